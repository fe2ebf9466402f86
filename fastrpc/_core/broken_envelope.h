/* Finds the id in a line that is no JSON, so that whoever waits for its answer gets one: the id of an error is
   null only if it could not be detected (JSON-RPC 2.0, section 5).

   One pass, no memory. What is wrong inside a value (a lone surrogate, NaN, bad UTF-8, a million digits, a
   thousand levels) is stepped over; the pass ends where the structure is wrong. The id is taken if it is a sound
   member of the outermost object, its only id, and another member or the end of the object follows it.
   Everything else in the line is ignored: no other part of a broken line has an effect. */

#ifndef FASTRPC_BROKEN_ENVELOPE_H
#define FASTRPC_BROKEN_ENVELOPE_H

#include "fault.h"

struct fastrpc_broken_envelope {
    const char *id;  // NULL: none can be read
    Py_ssize_t id_size;
    int has_method;
    int has_outcome;  // a result or an error
};

namespace fastrpc {

class EnvelopeScan {
public:
    EnvelopeScan(const char *line, Py_ssize_t size, fastrpc_broken_envelope *found)
        : at(line), end(line + size), found(found) {}

    void scan() {
        int ids = 0;
        if (end - at >= 3 && std::memcmp(at, "\xEF\xBB\xBF", 3) == 0) { at += 3; }
        skip_space();
        if (!is('{')) { return; }
        do {
            ++at;
            skip_space();
            const char *key = at;
            if (!is('"') || !skip_string()) { break; }
            const char *key_end = at;
            skip_space();
            if (!is(':')) { break; }
            ++at;
            skip_space();
            if (is_key(key, key_end, "method")) { found->has_method = 1; }
            if (is_key(key, key_end, "result") || is_key(key, key_end, "error")) { found->has_outcome = 1; }
            const char *value = at;
            if (!skip_value()) { break; }
            const char *value_end = at;
            skip_space();
            if (is_key(key, key_end, "id") && (is(',') || is('}'))) { take_id(value, value_end - value, ++ids); }
        } while (is(','));
    }

private:
    const char *at, *end;
    fastrpc_broken_envelope *found;

    bool is(char expected) const { return at < end && *at == expected; }

    void skip_space() {
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) { ++at; }
    }

    void take_id(const char *value, Py_ssize_t size, int count) {
        Py_ssize_t place;
        bool is_text = *value == '"';
        bool is_integer = *value == '-' || is_digit(*value);
        for (Py_ssize_t digit = 1; digit < size && !is_text; ++digit) { is_integer &= is_digit(value[digit]); }
        bool is_sound = (is_text || is_integer) && find_fault(value, size, &place) == nullptr;
        found->id = is_sound && count == 1 ? value : nullptr;
        found->id_size = size;
    }

    /* Whether a key, with its quotes, is this name, however it is escaped. */
    static bool is_key(const char *key, const char *key_end, const char *name) {
        for (++key; *name != '\0'; ++name) {
            int unit = static_cast<unsigned char>(*key);
            if (unit == '\\') {
                unit = unit_at(key, key_end);
                key += 5;
            }
            if (unit != *name) { return false; }
            ++key;
        }
        return key == key_end - 1;
    }

    /* False for a string that does not end. */
    bool skip_string() {
        for (++at; at < end; ++at) {
            if (*at == '"') {
                ++at;
                return true;
            }
            if (*at == '\\' && ++at == end) { break; }
        }
        return false;
    }

    bool skip_value() {
        if (is('"')) { return skip_string(); }
        if (is('{') || is('[')) { return skip_levels(); }
        const char *begin = at;
        while (at < end && std::strchr("{}[]\",: \t\r\n", *at) == nullptr) { ++at; }
        return at > begin;
    }

    /* False for an array or object that does not end, or with a bracket that closes another one. */
    bool skip_levels() {
        bool is_object[MOST_LEVELS];
        Py_ssize_t levels = 0;
        while (at < end) {
            if (*at == '"') {
                if (!skip_string()) { return false; }
                continue;
            }
            if (*at == '{' || *at == '[') {
                if (levels < MOST_LEVELS) { is_object[levels] = *at == '{'; }
                ++levels;
            } else if (*at == '}' || *at == ']') {
                --levels;
                if (levels < MOST_LEVELS && is_object[levels] != (*at == '}')) { return false; }
            }
            ++at;
            if (levels == 0) { return true; }
        }
        return false;
    }
};

static inline void read_broken_envelope(const char *line, Py_ssize_t size, fastrpc_broken_envelope *found) {
    *found = {nullptr, 0, 0, 0};
    EnvelopeScan(line, size, found).scan();
}

}  // namespace fastrpc

#endif
