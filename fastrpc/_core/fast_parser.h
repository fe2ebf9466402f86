/* The strict pass: reads the likely line, a tools/call (or prompts/get, resources/read) with plain arguments,
 * in one walk.
 *
 * It stands in front of simdjson and never judges: it either knows the whole line to be right and has
 * every part of it, or it hands the line over untouched. It is sure of objects whose keys have no
 * escapes and come once, of strings, integers of up to 18 digits, true, false and null;
 * of a `_meta` only if it is, byte for byte, the one that simdjson has read before. Everything else is
 * handed over: other methods, nested arguments, reals, anything that may be broken.
 *
 * Costs about 50 ns for a line of 120 bytes. Most clients write the same line again and again with other
 * values in it: the *shape* of the last line, its bytes between the values, is compared first, and only
 * the values are read; then a line costs about 20 ns. Where shapes keep missing they pause.
 *
 * The line has at least 64 readable bytes behind it, the first of which ends any string and any white space
 * that this pass knows: a control character. A body over HTTP may hold the same character, so nothing that is
 * compared with something remembered may trust it: there, sizes come first. */

#ifndef FASTRPC_FAST_PARSER_H
#define FASTRPC_FAST_PARSER_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "call.h"
#include "inline.h"
#include "string_decode.h"

#define FASTRPC_LONGEST_SHAPE 1024
#define FASTRPC_SPARE 64  /* bytes that may be read behind a line, or a shape */
#define FASTRPC_MISSES 4  /* in a row, and shapes are not tried for a while */
#define FASTRPC_PAUSE 64

/* A line without its values: what stands before, between and behind them. */
struct fastrpc_shape {
    struct fastrpc_call call; /* of the line it was learned from; reading renews the values */
    int values;               /* how many; 0 where there is no shape */
    int misses, pause;
    uint8_t which[FASTRPC_MOST_ARGUMENTS + 1]; /* 0 the id, n argument n - 1 */
    uint16_t sizes[FASTRPC_MOST_ARGUMENTS + 2];
    char bytes[FASTRPC_LONGEST_SHAPE + FASTRPC_SPARE];
};

static inline const char *fastrpc_space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\r') { ++at; }
    return at;
}

/* From behind the opening quote to the closing one; NULL for a string that may be broken. `beyond` says
 * whether it holds more than ASCII, `escaped` whether there are escapes. */
FASTRPC_INLINE const char *fastrpc_text(const char *at, int *beyond, int *escaped) {
    const char *start = at;
    int high = 0, escapes = 0;
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), escape = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1f);
    for (;;) {
        __m128i block = _mm_loadu_si128((const __m128i *)at);
        __m128i odd = _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, escape));
        int above = _mm_movemask_epi8(block);
        odd = _mm_or_si128(odd, _mm_cmpeq_epi8(_mm_min_epu8(block, control), block));
        int mark = _mm_movemask_epi8(odd);
        if (!mark) {
            high |= above;
            at += 16;
            continue;
        }
        int first = __builtin_ctz((unsigned)mark);
        at += first;
        high |= above & ((1 << first) - 1);
        if (*at != '\\') { break; }
        if (!(at = fastrpc_over_escape(at))) { return NULL; }
        escapes = 1;
    }
#else
    for (;;) {
        while (*at != '"' && *at != '\\' && (unsigned char)*at >= 0x20) { high |= *at++ & 0x80; }
        if (*at != '\\') { break; }
        if (!(at = fastrpc_over_escape(at))) { return NULL; }
        escapes = 1;
    }
#endif
    if (*at != '"') { return NULL; }
    if (high && !simdjson::validate_utf8(start, (size_t)(at - start))) { return NULL; }
    *beyond = high;
    *escaped = escapes;
    return at;
}

/* fastrpc_text() for what is compared byte by byte: with an escape it may be another text than it seems. */
static inline const char *fastrpc_string(const char *at) {
    int beyond, escaped;
    at = fastrpc_text(at, &beyond, &escaped);
    return at && !escaped ? at : NULL;
}

/* Over an integer of at most 18 digits; NULL for a longer one or a leading zero. Behind a real's integer
 * part no member can end, so whoever goes on hands it over. */
static inline const char *fastrpc_integer(const char *at, int64_t *value) {
    int negative = *at == '-';
    const char *digits = at + negative;
    int64_t number = 0;
    for (at = digits; *at >= '0' && *at <= '9'; ++at) {
        if (at - digits == 18) { return NULL; }
        number = number * 10 + (*at - '0');
    }
    if (at == digits || (*digits == '0' && (at - digits > 1 || negative))) { return NULL; }
    *value = negative ? -number : number;
    return at;
}

/* Over a key and its colon, to the value. */
static inline const char *fastrpc_key(const char *at, const char **key, Py_ssize_t *size) {
    const char *end;
    if (*at != '"' || !(end = fastrpc_string(at + 1))) { return NULL; }
    *key = at + 1;
    *size = end - *key;
    at = fastrpc_space(end + 1);
    return *at == ':' ? fastrpc_space(at + 1) : NULL;
}

/* Over the comma behind a member, to the next key; to the closing brace at the end; else NULL. */
static inline const char *fastrpc_next(const char *at) {
    at = fastrpc_space(at);
    if (*at == '}') { return at; }
    if (*at != ',') { return NULL; }
    at = fastrpc_space(at + 1);
    return *at == '"' ? at : NULL;
}

static inline const char *fastrpc_id(const char *at, struct fastrpc_call *call) {
    const char *end;
    int64_t ignored;
    call->id = at;
    end = *at == '"' ? fastrpc_string(at + 1) : fastrpc_integer(at, &ignored);
    if (!end) { return NULL; }
    end += *at == '"';
    call->id_size = end - at;
    return end;
}

FASTRPC_INLINE const char *fastrpc_argument_value(const char *at, struct fastrpc_argument *argument) {
    const char *end;
    switch (*at) {
    case '"':
        if (!(end = fastrpc_text(at + 1, &argument->beyond_ascii, &argument->escaped))) { return NULL; }
        argument->type = '"';
        argument->text = at + 1;
        argument->size = end - (at + 1);
        return end + 1;
    case 't':
        argument->type = 't';
        argument->integer = 1;
        return memcmp(at, "true", 4) == 0 ? at + 4 : NULL;
    case 'f':
        argument->type = 't';
        argument->integer = 0;
        return memcmp(at, "false", 5) == 0 ? at + 5 : NULL;
    case 'n':
        argument->type = 'n';
        return memcmp(at, "null", 4) == 0 ? at + 4 : NULL;
    default:
        argument->type = 'l';
        return fastrpc_integer(at, &argument->integer);
    }
}

static inline const char *fastrpc_arguments(const char *at, struct fastrpc_call *call) {
    if (*at != '{') { return NULL; }
    call->has_arguments = 1;
    at = fastrpc_space(at + 1);
    while (*at != '}') {
        struct fastrpc_argument *argument = &call->arguments[call->count];
        if (call->count++ == FASTRPC_MOST_ARGUMENTS) { return NULL; }
        if (!(at = fastrpc_key(at, &argument->key, &argument->key_size))) { return NULL; }
        argument->from = at;
        if (!(at = fastrpc_argument_value(at, argument))) { return NULL; }
        argument->to = at;
        if (!(at = fastrpc_next(at))) { return NULL; }
    }
    return at + 1;
}

static inline const char *fastrpc_params(
    const char *at, const char *line_end, struct fastrpc_call *call, const char *meta, Py_ssize_t meta_size
) {
    int is_uri;
    if (*at != '{') { return NULL; }
    at = fastrpc_space(at + 1);
    while (*at != '}') {
        const char *key, *end;
        Py_ssize_t size;
        if (!(at = fastrpc_key(at, &key, &size))) { return NULL; }
        is_uri = size == 3 && memcmp(key, "uri", 3) == 0;
        if (is_uri || (size == 4 && memcmp(key, "name", 4) == 0)) {
            if (call->name || *at != '"' || !(end = fastrpc_string(at + 1))) { return NULL; }
            call->name = at + 1;
            call->name_size = end - call->name;
            call->has_uri = is_uri;
            at = end + 1;
        } else if (size == 9 && memcmp(key, "arguments", 9) == 0) {
            if (call->has_arguments || !(at = fastrpc_arguments(at, call))) { return NULL; }
        } else if (size == 5 && memcmp(key, "_meta", 5) == 0) {
            if (call->has_meta || !meta_size) { return NULL; }
            /* Sizes first: the newline behind a line ends no comparison with a _meta that holds newlines. */
            if (line_end - at <= meta_size || memcmp(at, meta, (size_t)meta_size) != 0) { return NULL; }
            call->has_meta = 1;
            at += meta_size;
        } else {
            return NULL;
        }
        if (!(at = fastrpc_next(at))) { return NULL; }
    }
    return call->name ? at + 1 : NULL;
}

static inline const char *fastrpc_method(const char *at, struct fastrpc_call *call) {
    call->method = at + 1;
    if (memcmp(at, "\"tools/call\"", 12) == 0) { return at + (call->method_size = 10) + 2; }
    if (memcmp(at, "\"prompts/get\"", 13) == 0) { return at + (call->method_size = 11) + 2; }
    if (memcmp(at, "\"resources/read\"", 16) == 0) { return at + (call->method_size = 14) + 2; }
    return NULL;
}

/* Read a line; 1 if it is such a call and all of it is in `call`, 0 to hand it over. */
static inline int fastrpc_read_likely(
    const char *line, Py_ssize_t size, const char *meta, Py_ssize_t meta_size, struct fastrpc_call *call
) {
    int version = 0, params = 0;
    const char *at = line, *key;
    Py_ssize_t key_size;
    call->id = call->name = NULL;
    call->has_arguments = call->has_meta = call->has_uri = call->count = 0;
    call->method = NULL;
    if (*at != '{') { return 0; }
    at = fastrpc_space(at + 1);
    while (*at != '}') {
        if (!(at = fastrpc_key(at, &key, &key_size))) { return 0; }
        if (key_size == 2 && memcmp(key, "id", 2) == 0) {
            if (call->id || !(at = fastrpc_id(at, call))) { return 0; }
        } else if (key_size == 6 && memcmp(key, "method", 6) == 0) {
            if (call->method || !(at = fastrpc_method(at, call))) { return 0; }
        } else if (key_size == 6 && memcmp(key, "params", 6) == 0) {
            if (params++ || !(at = fastrpc_params(at, line + size, call, meta, meta_size))) { return 0; }
        } else if (key_size == 7 && memcmp(key, "jsonrpc", 7) == 0) {
            if (version++ || memcmp(at, "\"2.0\"", 5) != 0) { return 0; }
            at += 5;
        } else {
            return 0;
        }
        if (!(at = fastrpc_next(at))) { return 0; }
    }
    if (!version || !call->method || !params || !call->id || fastrpc_space(at + 1) != line + size) { return 0; }
    return *call->method == 'r' ? call->has_uri && !call->has_arguments : !call->has_uri;
}

/* Are the next bytes the shape's? Both can be read up to 63 bytes further. */
static inline int fastrpc_same(const char *at, const char *bytes, Py_ssize_t size) {
#ifdef __SSE2__
    const __m128i *left = (const __m128i *)at, *right = (const __m128i *)bytes;
    for (; size > 64; size -= 64, left += 4, right += 4) {
        __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128(left), _mm_loadu_si128(right));
        for (int i = 1; i < 4; ++i) {
            same = _mm_and_si128(same, _mm_cmpeq_epi8(_mm_loadu_si128(left + i), _mm_loadu_si128(right + i)));
        }
        if (_mm_movemask_epi8(same) != 0xffff) { return 0; }
    }
    for (; size > 16; size -= 16, ++left, ++right) {
        __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128(left), _mm_loadu_si128(right));
        if (_mm_movemask_epi8(same) != 0xffff) { return 0; }
    }
    int same = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(left), _mm_loadu_si128(right)));
    return (~same & ((1 << size) - 1)) == 0;
#else
    return memcmp(at, bytes, (size_t)size) == 0;
#endif
}

/* fastrpc_id() for the likely id, a short integer, at a step. */
static inline const char *fastrpc_short_id(const char *at, struct fastrpc_call *call) {
#ifdef __SSE2__
    const __m128i zero = _mm_set1_epi8('0'), nine = _mm_set1_epi8(9);
    __m128i values = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)at), zero);
    __m128i digits = _mm_cmpeq_epi8(_mm_min_epu8(values, nine), values);
    unsigned others = ~(unsigned)_mm_movemask_epi8(digits) & 0xffff;
    if (others > 1 && *at != '0') {
        call->id = at;
        call->id_size = __builtin_ctz(others);
        if (call->id_size > 0) { return at + call->id_size; }
    }
#endif
    return fastrpc_id(at, call);
}

/* Read the line that begins here, if it is of the shape and its newline stands before `limit`; return
 * its size, with its values in `shape->call`, or 0. Its first 64 bytes behind `limit` can be read, and a
 * control character stands at its end or at `limit`. */
static inline Py_ssize_t fastrpc_read_shape(
    const char *line, const char *limit, struct fastrpc_shape *shape
) {
    const char *at = line, *bytes = shape->bytes;
    for (int value = 0;; ++value) {
        Py_ssize_t length = shape->sizes[value];
        if (limit - at <= length || !fastrpc_same(at, bytes, length)) { return 0; }
        at += length;
        bytes += length;
        if (value == shape->values) { return *at == '\n' ? at - line : 0; }
        int which = shape->which[value];
        at = which ? fastrpc_argument_value(at, &shape->call.arguments[which - 1])
                   : fastrpc_short_id(at, &shape->call);
        if (!at) { return 0; }
    }
}

/* Where text of a line lies in the shape that is being made of it: `bytes` behind the last value. */
static inline const char *fastrpc_moved(const char *text, const char *from, const char *bytes) {
    return bytes + (text - from);
}

/* Make the shape of a line that the pass has read into `call`. */
static inline void fastrpc_learn_shape(
    const char *line, Py_ssize_t size, const struct fastrpc_call *call, struct fastrpc_shape *shape
) {
    const char *at = line, *line_end = line + size;
    char *bytes = shape->bytes;
    int next = 0, id_taken = 0;
    shape->values = 0;
    shape->call = *call;
    for (int value = 0; value <= call->count + 1; ++value) {
        /* Arguments stand in order; the id may stand before, or behind them. */
        int is_id = !id_taken && (next == call->count || call->id < call->arguments[next].from);
        const char *from = value > call->count ? line_end : is_id ? call->id : call->arguments[next].from;
        Py_ssize_t length = from - at;
        if (bytes + length > shape->bytes + FASTRPC_LONGEST_SHAPE) { return; }
        memcpy(bytes, at, (size_t)length);
        if (call->name >= at && call->name < from) {
            shape->call.name = fastrpc_moved(call->name, at, bytes);
        }
        if (call->method >= at && call->method < from) {
            shape->call.method = fastrpc_moved(call->method, at, bytes);
        }
        if (value <= call->count && !is_id) {
            shape->call.arguments[next].key = fastrpc_moved(call->arguments[next].key, at, bytes);
        }
        shape->sizes[value] = (uint16_t)length;
        bytes += length;
        if (value > call->count) { break; }
        shape->which[value] = (uint8_t)(is_id ? 0 : next + 1);
        at = is_id ? call->id + call->id_size : call->arguments[next].to;
        if (is_id) { id_taken = 1; } else { ++next; }
    }
    shape->values = call->count + 1;
}

/* Try the shape, unless shapes have kept missing: fastrpc_read_shape(). */
static inline Py_ssize_t fastrpc_try_shape(const char *line, const char *limit, struct fastrpc_shape *shape) {
    Py_ssize_t size;
    if (!shape->values) { return 0; }
    size = fastrpc_read_shape(line, limit, shape);
    if (size) {
        shape->misses = 0;
    } else if (++shape->misses == FASTRPC_MISSES) {
        shape->misses = 0;
        shape->pause = FASTRPC_PAUSE;
        shape->values = 0;
    }
    return size;
}

/* Learn a line's shape, unless shapes pause; 1 if there is one now. */
static inline int fastrpc_note_shape(
    const char *line, Py_ssize_t size, const struct fastrpc_call *call, struct fastrpc_shape *shape
) {
    if (shape->pause) {
        --shape->pause;
        return 0;
    }
    fastrpc_learn_shape(line, size, call, shape);
    return shape->values != 0;
}

#endif
