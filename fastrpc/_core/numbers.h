/* Numbers as JSON writes them, and integers beyond 64 bits, which simdjson cannot hold.

   A line with such integers is copied with each of them as a marked string, "<0xFF>digits": a string of a line that
   is UTF-8 holds no such byte. simdjson then reads the copy, and whoever makes values of it makes an integer of
   a marked string. What else is wrong with the line stays wrong in the copy. Costs a look at each structural
   mark and a copy, and only a line that simdjson has refused for a number. */

#ifndef FASTRPC_NUMBERS_H
#define FASTRPC_NUMBERS_H

#include <Python.h>

#include <cstring>
#include <string>
#include <vector>

#include "simdjson.h"

namespace fastrpc {

enum {
    MOST_DIGITS = 4300,  // of an integer: where Python's own conversion stops
    MARKS = 3            // bytes that a marked string is longer than its integer
};

static const char MARK = '\xFF';

enum Number { NO_NUMBER, INTEGER, REAL };

static inline bool is_digit(char character) { return character >= '0' && character <= '9'; }

/* Reads the number that begins at `at` (RFC 8259, section 6): its kind, where what makes it a real begins, and
   where it ends. */
static inline Number read_number(const char *at, const char *end, const char **fraction, const char **rest) {
    auto skip_digits = [end](const char *from) {
        while (from < end && is_digit(*from)) { ++from; }
        return from;
    };
    if (at < end && *at == '-') { ++at; }
    if (at == end || !is_digit(*at)) { return NO_NUMBER; }
    at = *at == '0' ? at + 1 : skip_digits(at);
    *fraction = *rest = at;
    if (at + 1 < end && *at == '.' && is_digit(at[1])) { *rest = at = skip_digits(at + 1); }
    if (at < end && (*at == 'e' || *at == 'E')) {
        const char *exponent = at + 1;
        if (exponent < end && (*exponent == '+' || *exponent == '-')) { ++exponent; }
        if (exponent < end && is_digit(*exponent)) { *rest = skip_digits(exponent); }
    }
    return *rest > *fraction ? REAL : INTEGER;
}

static inline Py_ssize_t digits_of(const char *number, const char *rest) {
    return rest - number - (*number == '-');
}

/* Whether an integer is outside of what simdjson holds, from -2^63 up to 2^64 - 1. */
static inline bool is_beyond_64_bits(const char *number, const char *rest) {
    bool negative = *number == '-';
    const char *limit = negative ? "9223372036854775808" : "18446744073709551615";
    Py_ssize_t size = digits_of(number, rest), most = static_cast<Py_ssize_t>(std::strlen(limit));
    return size > most || (size == most && std::memcmp(number + negative, limit, most) > 0);
}

/* Whether a real is beyond a double. Its digits and its exponent give its size. One close to the limit of
   1.8e308 is converted instead. */
static inline bool is_beyond_double(const char *number, const char *fraction, const char *rest) {
    const char *digits = number + (*number == '-');
    const char *mantissa_end = fraction;
    while (mantissa_end < rest && *mantissa_end != 'e' && *mantissa_end != 'E') { ++mantissa_end; }
    const char *first = digits;  // that is not zero
    while (first < mantissa_end && (*first == '0' || *first == '.')) { ++first; }
    if (first == mantissa_end) { return false; }
    Py_ssize_t before_point = first < fraction ? fraction - first : fraction + 1 - first;
    Py_ssize_t exponent = 0;
    if (mantissa_end < rest) {
        const char *at = mantissa_end + 1;
        bool negative = *at == '-';
        if (*at == '-' || *at == '+') { ++at; }
        for (; at < rest && exponent < PY_SSIZE_T_MAX / 100; ++at) { exponent = exponent * 10 + (*at - '0'); }
        if (negative) { exponent = -exponent; }
    }
    Py_ssize_t size = before_point + exponent;  // the value is below 10 to the power of this
    if (size != 309) { return size > 309; }
    double value = PyOS_string_to_double(std::string(number, rest).c_str(), nullptr, nullptr);
    if (value == -1.0 && PyErr_Occurred()) { PyErr_Clear(); }
    return value > 1.7976931348623157e308 || value < -1.7976931348623157e308;
}

/* The integers beyond 64 bits of a line of which simdjson's first stage has found the marks, one at a time. */
class LargeIntegers {
public:
    const char *number = nullptr;
    Py_ssize_t size = 0;

    LargeIntegers(const simdjson::dom::parser &parser, const char *line, Py_ssize_t length)
        : indexes(parser.implementation->structural_indexes.get()),
          count(parser.implementation->n_structural_indexes), line(line), end(line + length) {}

    bool next() {
        while (at < count) {
            const char *mark = line + indexes[at++];
            if (mark < end && (*mark == '-' || is_digit(*mark)) && is_large(mark)) { return true; }
        }
        return false;
    }

private:
    const uint32_t *indexes;
    size_t count, at = 0;
    const char *line, *end;

    bool is_large(const char *mark) {
        const char *fraction, *rest;
        if (read_number(mark, end, &fraction, &rest) != INTEGER || !is_beyond_64_bits(mark, rest)
            || digits_of(mark, rest) > MOST_DIGITS || !is_value(rest)) { return false; }
        number = mark;
        size = rest - mark;
        return true;
    }

    /* Whether what ends here is in the position of a value: a string may be a name, too. */
    bool is_value(const char *rest) const {
        while (rest < end && (*rest == ' ' || *rest == '\t' || *rest == '\r' || *rest == '\n')) { ++rest; }
        return rest == end || *rest == ',' || *rest == '}' || *rest == ']';
    }
};

/* How many bytes longer the copy of a line is. */
static inline Py_ssize_t marks_of(const simdjson::dom::parser &parser, const char *line, Py_ssize_t size) {
    LargeIntegers integers(parser, line, size);
    Py_ssize_t marks = 0;
    while (integers.next()) { marks += MARKS; }
    return marks;
}

/* Writes a copy of the line that the parser has just refused, with its large integers as marked strings, and has
   the parser read it. `copy` has room for `copy_size` bytes and 64 more. The marks are put in between simdjson's
   stages: the first one looks whether all is UTF-8. */
static inline int parse_marked(
    simdjson::dom::parser &parser, const char *line, Py_ssize_t size, char *copy, Py_ssize_t copy_size,
    size_t depth, simdjson::dom::element &root
) {
    std::vector<char *> marks;
    LargeIntegers integers(parser, line, size);
    const char *copied = line;
    char *to = copy;
    while (integers.next()) {
        std::memcpy(to, copied, integers.number - copied);
        to += integers.number - copied;
        *to++ = '"';
        marks.push_back(to);
        *to++ = '?';
        std::memcpy(to, integers.number, integers.size);
        to += integers.size;
        *to++ = '"';
        copied = integers.number + integers.size;
    }
    std::memcpy(to, copied, line + size - copied);
    std::memset(copy + copy_size, '\n', simdjson::SIMDJSON_PADDING);
    int error = parser.allocate(copy_size, depth);
    if (!error) { error = parser.doc.allocate(copy_size); }
    auto *text = reinterpret_cast<const uint8_t *>(copy);
    if (!error) { error = parser.implementation->stage1(text, copy_size, simdjson::stage1_mode::regular); }
    for (char *place : marks) { *place = MARK; }
    if (!error) { error = parser.implementation->stage2(parser.doc); }
    if (!error) { root = parser.doc.root(); }
    return error;
}

}  // namespace fastrpc

#endif
