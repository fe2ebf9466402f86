/* Finds what is wrong with a line that simdjson has refused, and at which byte: the words of the error.

   One pass over the bytes, some 2 ns each, no memory. It knows the same language as simdjson with our limits:
   RFC 8259 in UTF-8, at most 128 levels, surrogates in pairs, integers of at most 4,300 digits, reals that a
   double can hold. It decides nothing: that the line is broken is known before. */

#ifndef FASTRPC_FAULT_H
#define FASTRPC_FAULT_H

#include <Python.h>

#include <cstring>

#include "numbers.h"

namespace fastrpc {

enum { MOST_LEVELS = 128 };

/* The number of an escape of the form \uXXXX; -1 if there is none. */
static inline int unit_at(const char *escape, const char *end) {
    if (end - escape < 6 || escape[0] != '\\' || escape[1] != 'u') { return -1; }
    int unit = 0;
    for (int place = 2; place < 6; ++place) {
        char digit = escape[place];
        int value = digit >= '0' && digit <= '9' ? digit - '0'
                  : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                  : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
        if (value < 0) { return -1; }
        unit = unit * 16 + value;
    }
    return unit;
}

class FaultFinder {
public:
    FaultFinder(const char *line, Py_ssize_t size)
        : line(line), at(line), end(line + size) {}

    /* Returns what is wrong, and where; NULL where nothing is. */
    const char *find(Py_ssize_t *place) {
        const char *reason = document();
        *place = at - line;
        return reason;
    }

private:
    const char *line, *at, *end;
    bool is_object[MOST_LEVELS];  // of each open level
    int levels = 0;

    bool is(char expected) const { return at < end && *at == expected; }

    void skip_space() {
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) { ++at; }
    }

    const char *document() {
        if (end - at >= 3 && std::memcmp(at, "\xEF\xBB\xBF", 3) == 0) { return "a byte order mark"; }
        while (true) {
            const char *reason = begin_value();
            if (reason != nullptr) { return reason; }
            if (opened) { continue; }
            reason = end_value();
            if (reason != nullptr) { return reason; }
            if (levels == 0) { return at < end ? "extra data" : nullptr; }
        }
    }

    bool opened = false;  // a level that is not empty: a value of it comes next

    /* Reads a scalar or an empty level whole, of any other level the part before its first value. */
    const char *begin_value() {
        opened = false;
        skip_space();
        if (at == end) { return "expecting value"; }
        switch (*at) {
            case '{': case '[': return open();
            case '"': return string();
            case 't': return literal("true", 4);
            case 'f': return literal("false", 5);
            case 'n': return literal("null", 4);
            default: return number();
        }
    }

    const char *open() {
        bool object = *at == '{';
        if (levels == MOST_LEVELS) { return "more than 128 levels of nesting"; }
        is_object[levels++] = object;
        ++at;
        skip_space();
        if (is(object ? '}' : ']')) {
            ++at;
            --levels;
            return nullptr;
        }
        opened = true;
        return object ? name() : nullptr;
    }

    /* Behind a value: closes levels that end here, and steps over the comma before the next value. */
    const char *end_value() {
        while (true) {
            skip_space();
            if (levels == 0) { return nullptr; }
            bool object = is_object[levels - 1];
            if (is(',')) {
                ++at;
                if (!object) { return nullptr; }
                skip_space();
                return name();
            }
            if (!is(object ? '}' : ']')) { return "expecting ',' delimiter"; }
            ++at;
            --levels;
        }
    }

    const char *name() {
        if (!is('"')) { return "expecting property name enclosed in double quotes"; }
        const char *reason = string();
        if (reason != nullptr) { return reason; }
        skip_space();
        if (!is(':')) { return "expecting ':' delimiter"; }
        ++at;
        return nullptr;
    }

    const char *literal(const char *word, Py_ssize_t size) {
        if (end - at < size || std::memcmp(at, word, size) != 0) { return "expecting value"; }
        at += size;
        return nullptr;
    }

    const char *number() {
        const char *fraction, *rest;
        Number kind = read_number(at, end, &fraction, &rest);
        if (kind == NO_NUMBER) { return "expecting value"; }
        if (kind == INTEGER && digits_of(at, rest) > MOST_DIGITS) {
            return "an integer of more than 4300 digits";
        }
        if (kind == REAL && is_beyond_double(at, fraction, rest)) {
            return "a number beyond the range of a double";
        }
        at = rest;
        return nullptr;
    }

    const char *string() {
        const char *begin = at++;
        while (at < end) {
            unsigned char byte = static_cast<unsigned char>(*at);
            if (byte == '"') {
                ++at;
                return nullptr;
            }
            if (byte < 0x20) { return "a control character in a string"; }
            const char *reason = byte == '\\' ? escape() : byte < 0x80 ? plain() : beyond_ascii(byte);
            if (reason != nullptr) { return reason; }
        }
        at = begin;
        return "unterminated string starting";
    }

    const char *plain() {
        ++at;
        return nullptr;
    }

    const char *escape() {
        if (end - at < 2 || std::strchr("\"\\/bfnrtu", at[1]) == nullptr || at[1] == 0) {
            return "an invalid escape";
        }
        if (at[1] != 'u') {
            at += 2;
            return nullptr;
        }
        int unit = unit_at(at, end);
        if (unit < 0) { return "an invalid \\uXXXX escape"; }
        if (unit < 0xD800 || unit > 0xDFFF) {
            at += 6;
            return nullptr;
        }
        int low = unit < 0xDC00 ? unit_at(at + 6, end) : -1;
        if (low < 0xDC00 || low > 0xDFFF) { return "a \\u escape of half a surrogate pair"; }
        at += 12;
        return nullptr;
    }

    bool continues(Py_ssize_t place, unsigned char least = 0x80, unsigned char most = 0xBF) const {
        if (end - at <= place) { return false; }
        unsigned char byte = static_cast<unsigned char>(at[place]);
        return byte >= least && byte <= most;
    }

    /* One character of UTF-8 (RFC 3629, section 4). */
    const char *beyond_ascii(unsigned char first) {
        Py_ssize_t size = 0;
        if (first >= 0xC2 && first <= 0xDF) {
            size = continues(1) ? 2 : 0;
        } else if (first >= 0xE0 && first <= 0xEF) {
            unsigned char least = first == 0xE0 ? 0xA0 : 0x80, most = first == 0xED ? 0x9F : 0xBF;
            size = continues(1, least, most) && continues(2) ? 3 : 0;
        } else if (first >= 0xF0 && first <= 0xF4) {
            unsigned char least = first == 0xF0 ? 0x90 : 0x80, most = first == 0xF4 ? 0x8F : 0xBF;
            size = continues(1, least, most) && continues(2) && continues(3) ? 4 : 0;
        }
        if (size == 0) { return "not UTF-8"; }
        at += size;
        return nullptr;
    }
};

static inline const char *find_fault(const char *line, Py_ssize_t size, Py_ssize_t *at) {
    return FaultFinder(line, size).find(at);
}

}  // namespace fastrpc

#endif
