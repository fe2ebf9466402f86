/* From a str's characters to the text between a JSON string's quotes, in UTF-8.
 *
 * Only what RFC 8259 section 7 wants escaped is: the quote, the backslash and the 32 control characters.
 * Plain ASCII goes 16 characters at a step, whatever the kind of the str; the others go one by one, UTF-8
 * being made on the way. A million characters cost 35 µs where all is plain ASCII, 50 with a newline in
 * each line, 70 where a few have made the str four bytes wide, about 1 ms in words of another script.
 * Nothing is allocated, only half of a surrogate pair is refused; no character after the last is read.
 *
 * Whoever calls has room for six bytes a character, and for 16 more: each step writes all its places. */

#ifndef FASTRPC_STRING_ENCODE_H
#define FASTRPC_STRING_ENCODE_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "inline.h"

/* The letter after the backslash for each byte that JSON escapes; 'u' needs four digits more. */
static const char fastrpc_escape[256] = {
    ['"'] = '"', ['\\'] = '\\',
    ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't',
    [0] = 'u', [1] = 'u', [2] = 'u', [3] = 'u', [4] = 'u', [5] = 'u', [6] = 'u', [7] = 'u', [11] = 'u',
    [14] = 'u', [15] = 'u', [16] = 'u', [17] = 'u', [18] = 'u', [19] = 'u', [20] = 'u', [21] = 'u',
    [22] = 'u', [23] = 'u', [24] = 'u', [25] = 'u', [26] = 'u', [27] = 'u', [28] = 'u', [29] = 'u',
    [30] = 'u', [31] = 'u',
};

/* --- one character ----------------------------------------------------------------------------------- */

static inline char *fastrpc_escape_byte(char *to, unsigned char byte) {
    static const char digits[] = "0123456789abcdef";
    char letter = fastrpc_escape[byte];
    if (letter == 0) {
        *to = (char)byte;
        return to + 1;
    }
    to[0] = '\\';
    to[1] = letter;
    if (letter != 'u') { return to + 2; }
    to[2] = to[3] = '0';
    to[4] = digits[byte >> 4];
    to[5] = digits[byte & 15];
    return to + 6;
}

/* One beyond ASCII, as UTF-8; NULL at half of a surrogate pair. */
static inline char *fastrpc_encode(char *to, uint32_t character) {
    if (character < 0x800) {
        to[0] = (char)(0xC0 | character >> 6);
        to[1] = (char)(0x80 | (character & 63));
        return to + 2;
    }
    if (character < 0x10000) {
        if (character >= 0xD800 && character < 0xE000) { return NULL; }
        to[0] = (char)(0xE0 | character >> 12);
        to[1] = (char)(0x80 | (character >> 6 & 63));
        to[2] = (char)(0x80 | (character & 63));
        return to + 3;
    }
    to[0] = (char)(0xF0 | character >> 18);
    to[1] = (char)(0x80 | (character >> 12 & 63));
    to[2] = (char)(0x80 | (character >> 6 & 63));
    to[3] = (char)(0x80 | (character & 63));
    return to + 4;
}

/* --- steps ------------------------------------------------------------------------------------------- */

static inline int fastrpc_plain_8(uint64_t bytes) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t quotes = bytes ^ (ones * '"'), slashes = bytes ^ (ones * '\\');
    uint64_t odd = (quotes - ones) & ~quotes;
    odd |= (slashes - ones) & ~slashes;
    odd |= (bytes - ones * 32) & ~bytes;
    return (odd & tops) == 0;
}

#ifdef __SSE2__
/* Of 16 bytes those that need an escape: a bit for each. */
static inline unsigned fastrpc_odd_16(__m128i block) {
    __m128i odd = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(31)), block);
    odd = _mm_or_si128(odd, _mm_cmpeq_epi8(block, _mm_set1_epi8('"')));
    odd = _mm_or_si128(odd, _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
    return (unsigned)_mm_movemask_epi8(odd);
}

/* 16 characters as bytes, those beyond ASCII as 0 or as a byte beyond ASCII. */
static inline __m128i fastrpc_narrow_16(const void *from, int width) {
    const __m128i *blocks = (const __m128i *)from;
    if (width == 1) { return _mm_loadu_si128(blocks); }
    __m128i first = _mm_loadu_si128(blocks), second = _mm_loadu_si128(blocks + 1);
    if (width == 2) { return _mm_packus_epi16(first, second); }
    __m128i third = _mm_loadu_si128(blocks + 2), fourth = _mm_loadu_si128(blocks + 3);
    return _mm_packus_epi16(_mm_packs_epi32(first, second), _mm_packs_epi32(third, fourth));
}
#endif

/* --- UTF-8, a str of ASCII above all ----------------------------------------------------------------- */

static inline char *fastrpc_escape_some(char *to, const unsigned char *from, Py_ssize_t size) {
    for (Py_ssize_t at = 0; at < size; ++at) { to = fastrpc_escape_byte(to, from[at]); }
    return to;
}

/* The last bytes, fewer than 16: eight at a time, the second eight overlapping the first. A str has no
 * spare bytes after it; `more` says that eight bytes before `from` may be read. */
static inline char *fastrpc_escape_end(char *to, const unsigned char *from, Py_ssize_t size, int more) {
    uint64_t bytes;
    if (size >= 8) {
        memcpy(&bytes, from, 8);
        if (!fastrpc_plain_8(bytes)) { return fastrpc_escape_some(to, from, size); }
        memcpy(to, &bytes, 8);
        to += 8; from += 8; size -= 8;
        more = 1;
    }
    if (size == 0) { return to; }
    if (more) {
        memcpy(&bytes, from + size - 8, 8);
        if (fastrpc_plain_8(bytes)) {
            memcpy(to + size - 8, &bytes, 8);
            return to + size;
        }
    }
    return fastrpc_escape_some(to, from, size);
}

#ifdef __SSE2__
/* 16 bytes of which some are `odd`, where 16 more can be read after them. What follows an escape is
 * written again, from where it has moved to: the next block need not wait for it. */
static inline char *fastrpc_escape_marked(char *to, const unsigned char *from, unsigned odd) {
    int done = 0;
    do {
        int at = __builtin_ctz(odd);
        to = fastrpc_escape_byte(to + (at - done), from[at]);
        done = at + 1;
        _mm_storeu_si128((__m128i *)to, fastrpc_narrow_16(from + done, 1));
        odd &= odd - 1;
    } while (odd);
    return to + (16 - done);
}
#endif

FASTRPC_INLINE char *fastrpc_escape_all(char *to, const unsigned char *from, Py_ssize_t size) {
    const unsigned char *start = from, *end = from + size;
    for (; end - from >= 16; from += 16) {
#ifdef __SSE2__
        __m128i block = fastrpc_narrow_16(from, 1);
        unsigned odd = fastrpc_odd_16(block);
        _mm_storeu_si128((__m128i *)to, block);
        if (!odd) {
            to += 16;
        } else if (end - from >= 32) {
            to = fastrpc_escape_marked(to, from, odd);
        } else {
            to = fastrpc_escape_some(to, from, 16);
        }
#else
        uint64_t halves[2];
        memcpy(halves, from, 16);
        memcpy(to, from, 16);
        int plain = fastrpc_plain_8(halves[0]) & fastrpc_plain_8(halves[1]);
        to = plain ? to + 16 : fastrpc_escape_some(to, from, 16);
#endif
    }
#ifdef __SSE2__
    if (from > start) {
        /* The last bytes together with those before them: where none of the 16 is odd, writing those again
         * changes nothing. */
        __m128i block = fastrpc_narrow_16(end - 16, 1);
        if (!fastrpc_odd_16(block)) {
            to += end - from;
            _mm_storeu_si128((__m128i *)(to - 16), block);
            return to;
        }
    }
#endif
    return fastrpc_escape_end(to, from, end - from, from > start);
}

/* --- a str beyond ASCII, compiled for each width ----------------------------------------------------- */

FASTRPC_INLINE uint32_t fastrpc_character(const char *from, Py_ssize_t at, int width) {
    if (width == 1) { return ((const uint8_t *)from)[at]; }
    return width == 2 ? ((const uint16_t *)from)[at] : ((const uint32_t *)from)[at];
}

static inline char *fastrpc_escape_character(char *to, uint32_t character) {
    if (character < 0x80) { return fastrpc_escape_byte(to, (unsigned char)character); }
    return fastrpc_encode(to, character);
}

FASTRPC_INLINE char *fastrpc_escape_each(char *to, const char *from, Py_ssize_t size, int width) {
    for (Py_ssize_t at = 0; at < size; ++at) {
        to = fastrpc_escape_character(to, fastrpc_character(from, at, width));
        if (!to) { return NULL; }
    }
    return to;
}

#ifdef __SSE2__
/* fastrpc_escape_marked() for a wider str. */
FASTRPC_INLINE char *fastrpc_escape_marked_wide(char *to, const char *from, unsigned odd, int width) {
    int done = 0;
    do {
        int at = __builtin_ctz(odd);
        to = fastrpc_escape_character(to + (at - done), fastrpc_character(from, at, width));
        if (!to) { return NULL; }
        done = at + 1;
        _mm_storeu_si128((__m128i *)to, fastrpc_narrow_16(from + done * width, width));
        odd &= odd - 1;
    } while (odd);
    return to + (16 - done);
}
#endif

/* 16 characters of which none takes an escape or three bytes. Which take two cannot be foreseen in words and
 * spaces, so there is no branch for it. */
FASTRPC_INLINE char *fastrpc_encode_two_16(char *to, const char *from, int width) {
    for (int at = 0; at < 16; ++at) {
        uint32_t character = fastrpc_character(from, at, width);
        int two = character >= 0x80;
        to[0] = (char)(two ? 0xC0 | character >> 6 : character);
        to[1] = (char)(0x80 | (character & 63));
        to += 1 + two;
    }
    return to;
}

FASTRPC_INLINE int fastrpc_two_will_do(const char *from, int width) {
    uint32_t all = 0;
    for (int at = 0; at < 16; ++at) { all |= fastrpc_character(from, at, width); }
    return all < 0x800;
}

/* Copies eight characters, and says whether all are plain ones. */
FASTRPC_INLINE int fastrpc_copy_8(char *to, const char *from, int width) {
    unsigned char narrow[8];
    uint32_t all = 0;
    uint64_t bytes;
    for (int i = 0; i < 8; ++i) {
        uint32_t character = fastrpc_character(from, i, width);
        narrow[i] = (unsigned char)character;
        all |= character;
    }
    memcpy(&bytes, narrow, 8);
    memcpy(to, narrow, 8);
    return all < 0x80 && fastrpc_plain_8(bytes);
}

FASTRPC_INLINE char *fastrpc_escape_kind(char *to, const char *from, Py_ssize_t size, int width) {
    const char *end = from + size * width;
#ifdef __SSE2__
    for (; to && end - from >= 16 * width; from += 16 * width) {
        __m128i block = fastrpc_narrow_16(from, width);
        unsigned escaped = fastrpc_odd_16(block), odd = escaped | (unsigned)_mm_movemask_epi8(block);
        _mm_storeu_si128((__m128i *)to, block);
        if (!odd) {
            to += 16;
        } else if (end - from >= 32 * width && !(odd & odd >> 1 & odd >> 2)) {
            to = fastrpc_escape_marked_wide(to, from, odd, width);
        } else if (!escaped && fastrpc_two_will_do(from, width)) {
            to = fastrpc_encode_two_16(to, from, width);
        } else { /* words of another script: most characters are odd */
            to = fastrpc_escape_each(to, from, 16, width);
        }
    }
#endif
    for (; to && end - from >= 8 * width; from += 8 * width) {
        to = fastrpc_copy_8(to, from, width) ? to + 8 : fastrpc_escape_each(to, from, 8, width);
    }
    return to ? fastrpc_escape_each(to, from, (end - from) / width, width) : NULL;
}

/* Escapes `size` characters of a str, from the one at `at` on; NULL at half of a surrogate pair. CPython's
 * encoder takes longer, and allocates a copy. */
static char *fastrpc_escape_wide(char *to, int width, const char *data, Py_ssize_t at, Py_ssize_t size) {
    data += at * width;
    if (width == 1) { return fastrpc_escape_kind(to, data, size, 1); }
    return width == 2 ? fastrpc_escape_kind(to, data, size, 2) : fastrpc_escape_kind(to, data, size, 4);
}

#endif
