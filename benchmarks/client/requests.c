/*
 * The requests of all workloads and the check of their answers. Both are made from the id alone, so
 * nothing has to be kept; neither runs while the clock does.
 */
#include "requests.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "texts.h"

enum { NOTES = 16, INVALID_PARAMS = -32602 };

static const char NOBODY[] = "nobody"; /* a tool that there is not */
static struct buffer expected;         /* what the answer at hand must hold */

enum request main_request(void) {
    switch (options.workload) {
    case TOOL_LISTS: return LIST;
    case PAYLOAD_CALLS: return PAYLOAD;
    case SHELL_CALLS: return SHELL;
    case MEMORY: return options.tools ? LIST : ECHO;
    case STRUCTURE_CALLS: return STRUCTURE;
    case TEXTS_CALLS: return TEXTS;
    case FAILING_CALLS: return FAILING;
    case MISFIT_CALLS: return MISFIT;
    case UNKNOWN_CALLS: return UNKNOWN;
    case PINGS: return PING;
    case RESOURCE_READS: return RESOURCE;
    case PROMPT_GETS: return PROMPT;
    case HTTP_CALLS: return options.answer == TWO_TEXTS ? TEXTS : options.answer == A_FAILURE ? FAILING : ECHO;
    default: return ECHO;
    }
}

/* ------------------------------------------------------------------ writing */

static void append(struct buffer *buffer, const char *bytes, size_t length) {
    reserve(buffer, length);
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
}

__attribute__((format(printf, 2, 3))) static void append_format(struct buffer *buffer, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text) void_run("a request is too long for the client");
    append(buffer, text, (size_t)length);
}

static void append_json_text(struct buffer *buffer, const char *text, size_t length) {
    append(buffer, "\"", 1);
    size_t plain = 0; /* the bytes before it are in the buffer */
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
        append(buffer, text + plain, i - plain);
        if (byte < 0x20) append_format(buffer, "\\u%04x", byte);
        else append_format(buffer, "\\%c", byte);
        plain = i + 1;
    }
    append(buffer, text + plain, length - plain);
    append(buffer, "\"", 1);
}

static void append_words(struct buffer *buffer, int64_t id) {
    char text[TEXT_ROOM];
    append_json_text(buffer, text, make_text(id, text));
}

/* The text that call `id` of echo sends and gets back, into `expected`. */
static void make_echo_text(int64_t id) {
    expected.length = 0;
    reserve(&expected, options.size > TEXT_ROOM ? options.size : TEXT_ROOM);
    if (options.size) {
        make_long_text(id, options.size, options.ascii, expected.data);
        expected.length = options.size;
    } else {
        expected.length = make_text(id, expected.data);
    }
}

/* A record of about 4 KB: what a tool that lists builds, files or issues hands around. */
static void append_record(struct buffer *buffer, int64_t id) {
    enum { STEPS = 26 };
    uint64_t random = mix((uint64_t)id);
    append_format(buffer, "{\"number\":%lld,\"title\":", (long long)id);
    append_words(buffer, id * 64);
    append_format(buffer, ",\"open\":%s,\"score\":%u.%u5,", random & 1 ? "true" : "false", (unsigned)(random >> 8) % 1000,
                  (unsigned)(random >> 40) % 10);
    append_format(buffer, "\"owner\":{\"name\":");
    append_words(buffer, id * 64 + 1);
    append_format(buffer, ",\"teams\":[\"core\",\"tools\"],\"settings\":{},\"limits\":[]},\"steps\":[");
    for (int i = 0; i < STEPS; i++) {
        random = mix(random);
        append_format(buffer, "%s{\"index\":%d,\"command\":", i ? "," : "", i);
        append_words(buffer, id * 64 + 2 + i);
        append_format(buffer, ",\"took_ms\":%u,\"share\":0.%03u7,\"passed\":%s,\"error\":null,", (unsigned)random & 0xffff,
                      (unsigned)(random >> 20) % 1000, random >> 63 ? "true" : "false");
        append_format(buffer, "\"lines\":[%u,%u,-%u]}", (unsigned)(random >> 30) % 100, (unsigned)(random >> 40) % 10000,
                      (unsigned)(random >> 50) % 10 + 1);
    }
    append_format(buffer, "]}");
}

static void append_call(struct buffer *buffer, enum request request, int64_t id) {
    char text[TEXT_ROOM];
    switch (request) {
    case PAYLOAD:
        append_format(buffer, "\"name\":\"payload\",\"arguments\":{\"object\":");
        append_record(buffer, id);
        break;
    case SHELL: /* a comment makes each command another one */
        append_format(buffer, "\"name\":\"%s\",\"arguments\":{\"command\":", options.tool ? options.tool : "bash");
        snprintf(text, sizeof text, " # %llx", (unsigned long long)mix((uint64_t)id));
        expected.length = 0;
        append(&expected, options.shell_command, strlen(options.shell_command));
        append(&expected, text, strlen(text));
        append_json_text(buffer, expected.data, expected.length);
        break;
    case SLEEP:
        append_format(buffer, "\"name\":\"%s\",\"arguments\":{\"ms\":%zu", options.tool ? options.tool : "sleep", options.sleep_ms);
        break;
    case MISFIT: /* the right text, but in an array */
        append_format(buffer, "\"name\":\"echo\",\"arguments\":{\"text\":[");
        append_words(buffer, id);
        append_format(buffer, "]");
        break;
    default: /* a prompt is asked for as a tool is called */
        make_echo_text(id);
        append_format(buffer, "\"name\":\"%s\",\"arguments\":{\"text\":", request == UNKNOWN ? NOBODY : "echo");
        append_json_text(buffer, expected.data, expected.length);
    }
    append_format(buffer, "}");
}

/* The URI of the resource that request `id` reads: one of a few. */
static void append_uri(struct buffer *buffer, int64_t id) {
    append_format(buffer, "bench://notes/%u", (unsigned)mix((uint64_t)id) % NOTES);
}

static void append_params(struct buffer *buffer, enum request request, int64_t id) {
    if (request != RESOURCE) {
        append_call(buffer, request, id);
        return;
    }
    append_format(buffer, "\"uri\":\"");
    append_uri(buffer, id);
    append_format(buffer, "\"");
}

static const char *method_of(enum request request) {
    switch (request) {
    case LIST: return "tools/list";
    case PING: return "ping";
    case RESOURCE: return "resources/read";
    case PROMPT: return "prompts/get";
    default: return "tools/call";
    }
}

static void append_envelope(struct buffer *buffer) {
    append_format(buffer, "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                          "\"io.modelcontextprotocol/clientCapabilities\":{},"
                          "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"load-client\",\"version\":\"1.0\"}}");
}

void append_request(struct buffer *buffer, enum request request, int64_t id) {
    bool has_params = request != LIST && request != PING;
    append_format(buffer, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"%s\",\"params\":{", (long long)id,
                  method_of(request));
    if (options.modern) append_envelope(buffer);
    if (options.modern && has_params) append(buffer, ",", 1);
    if (has_params) append_params(buffer, request, id);
    append_format(buffer, "}}\n");
}

size_t request_size(enum request request) {
    if (request == PAYLOAD) return 4096;
    return 128 + (request == ECHO ? options.size : 0) + (request == SHELL ? options.printed : 0);
}

/* ----------------------------------------------------------------- checking */

static yyjson_val *text_of_block(yyjson_val *block, int64_t id) {
    yyjson_val *text = yyjson_obj_get(block, "text");
    if (!yyjson_equals_str(yyjson_obj_get(block, "type"), "text") || !yyjson_is_str(text)) {
        void_run("call %lld: expected one text block", (long long)id);
    }
    return text;
}

/* The text of a result that holds exactly one block. */
static yyjson_val *only_text_of(yyjson_val *result, int64_t id) {
    yyjson_val *content = yyjson_obj_get(result, "content");
    if (yyjson_arr_size(content) != 1) void_run("call %lld: expected one text block", (long long)id);
    return text_of_block(yyjson_arr_get_first(content), id);
}

/* The same of a result that says that the tool has not failed. */
static yyjson_val *text_of(yyjson_val *result, int64_t id) {
    if (yyjson_get_bool(yyjson_obj_get(result, "isError"))) void_run("call %lld: the tool failed", (long long)id);
    return only_text_of(result, id);
}

/* The same of a result that says that it has. */
static yyjson_val *failure_of(yyjson_val *result, int64_t id) {
    if (!yyjson_get_bool(yyjson_obj_get(result, "isError"))) void_run("call %lld: expected isError", (long long)id);
    return only_text_of(result, id);
}

static void check_echo_text(yyjson_val *text, int64_t id) {
    make_echo_text(id);
    if (yyjson_get_len(text) != expected.length) {
        void_run("call %lld: expected the text '%.*s' of %zu bytes, got '%.100s' of %zu", (long long)id,
                 (int)(expected.length < 100 ? expected.length : 100), expected.data, expected.length, yyjson_get_str(text),
                 yyjson_get_len(text));
    }
    const char *got = yyjson_get_str(text);
    size_t at = 0;
    while (at < expected.length && got[at] == expected.data[at]) at++;
    if (at < expected.length) {
        size_t from = at > 40 ? at - 40 : 0, left = expected.length - from < 100 ? expected.length - from : 100;
        void_run("call %lld: expected the text '%.*s' around byte %zu, got '%.*s'", (long long)id, (int)left,
                 expected.data + from, at, (int)left, got + from);
    }
}

/* {"text": text}, as text and as structure. */
static void check_structure(yyjson_val *result, int64_t id) {
    yyjson_val *text = text_of(result, id), *structure = yyjson_obj_get(result, "structuredContent");
    yyjson_val *member = yyjson_obj_get(structure, "text");
    yyjson_doc *got = yyjson_read(yyjson_get_str(text), yyjson_get_len(text), 0);
    if (!yyjson_is_str(member) || yyjson_obj_size(structure) != 1) {
        void_run("call %lld: expected structuredContent with the member text alone", (long long)id);
    }
    if (!got || !yyjson_equals(yyjson_doc_get_root(got), structure)) {
        void_run("call %lld: structuredContent is not what the text holds", (long long)id);
    }
    check_echo_text(member, id);
    yyjson_doc_free(got);
}

/* The text in two blocks. */
static void check_texts(yyjson_val *result, int64_t id) {
    yyjson_val *content = yyjson_obj_get(result, "content"), *block;
    size_t index, count;
    if (yyjson_get_bool(yyjson_obj_get(result, "isError"))) void_run("call %lld: the tool failed", (long long)id);
    if (yyjson_arr_size(content) != 2) void_run("call %lld: expected two text blocks", (long long)id);
    yyjson_arr_foreach(content, index, count, block) check_echo_text(text_of_block(block, id), id);
}

/* The tool has failed with the text; servers put words of their own before it. */
static void check_failing(yyjson_val *result, int64_t id) {
    yyjson_val *text = failure_of(result, id);
    size_t length = yyjson_get_len(text);
    make_echo_text(id);
    if (length < expected.length ||
        memcmp(yyjson_get_str(text) + length - expected.length, expected.data, expected.length) != 0) {
        void_run("call %lld: expected an error that ends with '%.*s', got '%.100s'", (long long)id, (int)expected.length,
                 expected.data, yyjson_get_str(text));
    }
}

/* An error names the argument that does not fit, or the tool that there is not. */
static void check_name(yyjson_val *text, const char *name, int64_t id) {
    if (!strstr(yyjson_get_str(text), name)) {
        void_run("call %lld: expected an error that names %s, got '%.100s'", (long long)id, name, yyjson_get_str(text));
    }
}

/* One text, under the URI that was asked for; it ends with the number that the URI ends with. */
static void check_resource(yyjson_val *result, int64_t id) {
    yyjson_val *contents = yyjson_obj_get(result, "contents"), *content = yyjson_arr_get_first(contents);
    const char *text = yyjson_get_str(yyjson_obj_get(content, "text"));
    expected.length = 0;
    append_uri(&expected, id);
    append(&expected, "", 1);
    if (yyjson_arr_size(contents) != 1 || !yyjson_equals_str(yyjson_obj_get(content, "uri"), expected.data) || !text) {
        void_run("resource %lld: expected one text of %s", (long long)id, expected.data);
    }
    const char *number = strrchr(text, ' ');
    if (!number || strcmp(number + 1, strrchr(expected.data, '/') + 1) != 0) {
        void_run("resource %lld: expected the text of %s, got '%.100s'", (long long)id, expected.data, text);
    }
}

/* One message of the user, with the text. */
static void check_prompt(yyjson_val *result, int64_t id) {
    yyjson_val *messages = yyjson_obj_get(result, "messages"), *message = yyjson_arr_get_first(messages);
    if (yyjson_arr_size(messages) != 1 || !yyjson_equals_str(yyjson_obj_get(message, "role"), "user")) {
        void_run("prompt %lld: expected one message of the user", (long long)id);
    }
    check_echo_text(text_of_block(yyjson_obj_get(message, "content"), id), id);
}

/* The text, read as JSON, and the structure beside it, where there is one, must equal what was sent. */
static void check_payload(yyjson_val *result, int64_t id) {
    yyjson_val *text = text_of(result, id), *structure = yyjson_obj_get(result, "structuredContent");
    expected.length = 0;
    append_record(&expected, id);
    yyjson_doc *sent = yyjson_read(expected.data, expected.length, 0);
    yyjson_doc *got = yyjson_read(yyjson_get_str(text), yyjson_get_len(text), 0);
    if (!sent) void_run("call %lld: the client's own record is no JSON", (long long)id);
    if (!got || !yyjson_equals(yyjson_doc_get_root(sent), yyjson_doc_get_root(got))) {
        void_run("call %lld: expected the object %.*s, got the text %.100s", (long long)id, 100, expected.data,
                 yyjson_get_str(text));
    }
    if (structure && !yyjson_equals(yyjson_doc_get_root(sent), structure)) {
        void_run("call %lld: structuredContent is not the object that was sent", (long long)id);
    }
    yyjson_doc_free(sent);
    yyjson_doc_free(got);
}

/* A tool may leave out the middle of a long output and say so, but neither its head nor its tail. */
static void check_shell(yyjson_val *result, int64_t id) {
    enum { HEAD = 1000, LEAST = 20000 };
    yyjson_val *text = text_of(result, id);
    const char *got = yyjson_get_str(text);
    size_t length = yyjson_get_len(text), head = 0, count = 0;
    if (!options.printed) {
        if (length && strcmp(got, "(no output)") != 0) void_run("call %lld: expected no output, got '%.100s'", (long long)id, got);
        return;
    }
    while (head < length && got[head] == 'x') head++;
    for (size_t i = 0; i < length; i++) count += got[i] == 'x';
    size_t least = options.printed < LEAST ? options.printed : LEAST;
    if (head < (least < HEAD ? least : HEAD) || count < least || count > options.printed) {
        void_run("call %lld: expected %zu bytes x, or %zu and a note, got %zu in '%.100s'", (long long)id, options.printed, least,
                 count, got);
    }
}

static void check_list(yyjson_val *result, int64_t id) {
    yyjson_val *tools = yyjson_obj_get(result, "tools"), *tool;
    size_t index, count;
    if (!yyjson_is_arr(tools)) void_run("list %lld: no tools", (long long)id);
    if (options.tools && yyjson_arr_size(tools) != options.tools) {
        void_run("list %lld: expected %zu tools, got %zu", (long long)id, options.tools, yyjson_arr_size(tools));
    }
    yyjson_arr_foreach(tools, index, count, tool) {
        if (!yyjson_is_str(yyjson_obj_get(tool, "name")) || !yyjson_is_obj(yyjson_obj_get(tool, "inputSchema"))) {
            void_run("list %lld: tool %zu has no name or no schema", (long long)id, index);
        }
    }
}

void check_result(yyjson_val *result, enum request request, int64_t id) {
    if (options.modern && !yyjson_equals_str(yyjson_obj_get(result, "resultType"), "complete")) {
        void_run("call %lld: expected resultType complete", (long long)id);
    }
    switch (request) {
    case LIST: check_list(result, id); break;
    case PAYLOAD: check_payload(result, id); break;
    case SHELL: check_shell(result, id); break;
    case SLEEP: text_of(result, id); break; /* how long it slept is the load's to check */
    case STRUCTURE: check_structure(result, id); break;
    case TEXTS: check_texts(result, id); break;
    case FAILING: check_failing(result, id); break;
    case MISFIT: check_name(failure_of(result, id), "text", id); break;
    case PING: break; /* a result, whatever is in it */
    case RESOURCE: check_resource(result, id); break;
    case PROMPT: check_prompt(result, id); break;
    default: check_echo_text(text_of(result, id), id);
    }
}

void check_answer_to(yyjson_doc *doc, enum request request, int64_t id) {
    const char *what = options.workload_name;
    if (request == UNKNOWN) check_name(error_of(doc, id, INVALID_PARAMS, what), NOBODY, id);
    else check_result(result_of(doc, id, what), request, id);
}
