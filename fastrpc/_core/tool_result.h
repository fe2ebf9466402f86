/* A parsed answer as one of a tools/call: may the bytes of its result in the line be forwarded?
 *
 * It may, if it is a CallToolResult (MCP, tools) with content of known types: what a client of the same version
 * can read. No Python object is made. Everything else is left to the caller, which parses it. */

#ifndef FASTRPC_TOOL_RESULT_H
#define FASTRPC_TOOL_RESULT_H

#include <string_view>

#include "answer.h"
#include "simdjson.h"

namespace fastrpc {

static inline bool is_content(const simdjson::dom::element &value) {
    simdjson::dom::array blocks;
    if (value.get_array().get(blocks)) { return false; }
    for (simdjson::dom::element block : blocks) {
        std::string_view type, text;
        if (block["type"].get_string().get(type)) { return false; }
        if (type == "text") {
            if (block["text"].get_string().get(text)) { return false; }
        } else if (type != "image" && type != "audio" && type != "resource_link" && type != "resource") {
            return false;
        }
    }
    return true;
}

/* False also for a member that occurs twice: two readers could disagree on which one counts. */
static inline bool is_call_result(const simdjson::dom::element &value, int *is_error) {
    simdjson::dom::object members;
    int contents = 0, errors = 0;
    bool failed = false;
    if (value.get_object().get(members)) { return false; }
    for (simdjson::dom::key_value_pair member : members) {
        if (member.key == "content") {
            ++contents;
            if (!is_content(member.value)) { return false; }
        } else if (member.key == "isError") {
            ++errors;
            if (member.value.get_bool().get(failed)) { return false; }
        } else if (member.key == "structuredContent") {
            if (!member.value.is_object()) { return false; }
        } else if (member.key == "resultType") {
            return false;
        }
    }
    *is_error = failed;
    return contents == 1 && errors < 2;
}

/* Read an answer that was parsed from this line; false for one that is not to be forwarded as it is. */
static inline bool read_tool_result(
    const simdjson::dom::parser &parser, const simdjson::dom::element &root, const char *line,
    struct fastrpc_tool_result *found
) {
    simdjson::dom::object members;
    Py_ssize_t position = 0, result_position = -1;
    bool has_id = false;
    if (root.get_object().get(members)) { return false; }
    for (simdjson::dom::key_value_pair member : members) {
        if (member.key == "result") {
            if (!is_call_result(member.value, &found->is_error)) { return false; }
            result_position = position;
        } else if (member.key == "id") {
            if (member.value.get_int64().get(found->id)) { return false; }
            has_id = true;
        } else if (member.key == "error") {
            return false;
        }
        ++position;
    }
    if (!has_id || result_position < 0) { return false; }
    Places places;
    places.begin(parser, line);
    struct { const char *data; Py_ssize_t size; } result = {nullptr, 0};
    do { places.next(&result); } while (result_position-- > 0);
    found->text = result.data;
    found->size = result.size;
    return true;
}

}  // namespace fastrpc

#endif
