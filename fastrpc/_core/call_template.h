/* Call templates: the bytes of the last line between its values, and a reader of lines that differ in these alone.
 *
 * Most clients write the same line again and again with other values in it: what the strict pass has learned of
 * the last one (fast_parser.h) is compared first, and only the values are read; then a line costs about 20 ns.
 * Where templates keep missing they pause.
 *
 * At least 64 readable bytes follow a line, the first of them a control character; see fast_parser.h. */

#ifndef FASTRPC_CALL_TEMPLATE_H
#define FASTRPC_CALL_TEMPLATE_H

#include "fast_parser.h"

#define FASTRPC_LONGEST_TEMPLATE 1024
#define FASTRPC_SPARE 64  /* bytes that may be read after a line, or a template */
#define FASTRPC_MISSES 4  /* in a row, and templates are not tried for a while */
#define FASTRPC_PAUSE 64

/* A line without its values: the bytes before, between and after them. */
struct fastrpc_template {
    struct fastrpc_call call; /* of the line it was learned from; reading renews the values */
    int values;               /* how many; 0 where there is no template */
    int misses, pause;
    uint8_t which[FASTRPC_MOST_ARGUMENTS + 1]; /* 0 the id, n argument n - 1 */
    uint16_t sizes[FASTRPC_MOST_ARGUMENTS + 2];
    char bytes[FASTRPC_LONGEST_TEMPLATE + FASTRPC_SPARE];
};

/* Are the next bytes the template's? Both can be read up to 63 bytes further. */
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

/* Read the line that begins here, if it matches the template and its newline is before `limit`; return
 * its size, with its values in `pattern->call`, or 0. The first 64 bytes after `limit` can be read, and a
 * control character is at its end or at `limit`. */
static inline Py_ssize_t fastrpc_read_template(
    const char *line, const char *limit, struct fastrpc_template *pattern
) {
    const char *at = line, *bytes = pattern->bytes;
    for (int value = 0;; ++value) {
        Py_ssize_t length = pattern->sizes[value];
        if (limit - at <= length || !fastrpc_same(at, bytes, length)) { return 0; }
        at += length;
        bytes += length;
        if (value == pattern->values) { return *at == '\n' ? at - line : 0; }
        int which = pattern->which[value];
        at = which ? fastrpc_argument_value(at, &pattern->call.arguments[which - 1])
                   : fastrpc_short_id(at, &pattern->call);
        if (!at) { return 0; }
    }
}

/* Where text of a line lies in the template that is being made of it: `bytes` after the last value. */
static inline const char *fastrpc_moved(const char *text, const char *from, const char *bytes) {
    return bytes + (text - from);
}

/* Make the template of a line that the pass has read into `call`. */
static inline void fastrpc_make_template(
    const char *line, Py_ssize_t size, const struct fastrpc_call *call, struct fastrpc_template *pattern
) {
    const char *at = line, *line_end = line + size;
    char *bytes = pattern->bytes;
    int next = 0, id_taken = 0;
    pattern->values = 0;
    pattern->call = *call;
    for (int value = 0; value <= call->count + 1; ++value) {
        /* Arguments are in order; the id is before or after them. */
        int is_id = !id_taken && (next == call->count || call->id < call->arguments[next].from);
        const char *from = value > call->count ? line_end : is_id ? call->id : call->arguments[next].from;
        Py_ssize_t length = from - at;
        if (bytes + length > pattern->bytes + FASTRPC_LONGEST_TEMPLATE) { return; }
        memcpy(bytes, at, (size_t)length);
        if (call->name >= at && call->name < from) {
            pattern->call.name = fastrpc_moved(call->name, at, bytes);
        }
        if (call->method >= at && call->method < from) {
            pattern->call.method = fastrpc_moved(call->method, at, bytes);
        }
        if (value <= call->count && !is_id) {
            pattern->call.arguments[next].key = fastrpc_moved(call->arguments[next].key, at, bytes);
        }
        pattern->sizes[value] = (uint16_t)length;
        bytes += length;
        if (value > call->count) { break; }
        pattern->which[value] = (uint8_t)(is_id ? 0 : next + 1);
        at = is_id ? call->id + call->id_size : call->arguments[next].to;
        if (is_id) { id_taken = 1; } else { ++next; }
    }
    pattern->values = call->count + 1;
}

/* Try the template, unless templates have kept missing: fastrpc_read_template(). */
static inline Py_ssize_t fastrpc_try_template(
    const char *line, const char *limit, struct fastrpc_template *pattern
) {
    Py_ssize_t size;
    if (!pattern->values) { return 0; }
    size = fastrpc_read_template(line, limit, pattern);
    if (size) {
        pattern->misses = 0;
    } else if (++pattern->misses == FASTRPC_MISSES) {
        pattern->misses = 0;
        pattern->pause = FASTRPC_PAUSE;
        pattern->values = 0;
    }
    return size;
}

/* Learn a line's template, unless templates pause; 1 if there is one now. */
static inline int fastrpc_learn_template(
    const char *line, Py_ssize_t size, const struct fastrpc_call *call, struct fastrpc_template *pattern
) {
    if (pattern->pause) {
        --pattern->pause;
        return 0;
    }
    fastrpc_make_template(line, size, call, pattern);
    return pattern->values != 0;
}

#endif
