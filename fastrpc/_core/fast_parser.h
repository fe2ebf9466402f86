/* The strict pass: reads the likely line, a tools/call (or prompts/get, resources/read) with plain arguments,
 * in one walk.
 *
 * It runs before simdjson and rejects nothing: it either knows the whole line to be right and has
 * every part of it, or it hands the line over untouched. It is sure of objects whose keys have no
 * escapes and come once, of strings, integers of up to 18 digits, true, false and null;
 * of a `_meta` only if it is, byte for byte, the one that simdjson has read before. Everything else is
 * handed over: other methods, nested arguments, reals, anything that may be broken.
 *
 * Costs about 50 ns for a line of 120 bytes; call_template.h runs before it.
 *
 * At least 64 readable bytes follow the line, the first of which ends any string and any white space
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

static inline const char *fastrpc_space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\r') { ++at; }
    return at;
}

/* From after the opening quote to the closing one; NULL for a string that may be broken. `beyond` says
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
 * part no member can end, so the code that goes on hands it over. */
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

/* Over the comma after a member, to the next key; to the closing brace at the end; else NULL. */
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
            /* Sizes first: the newline after a line ends no comparison with a _meta that holds newlines. */
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
static inline int fastrpc_parse_fast(
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

#endif
