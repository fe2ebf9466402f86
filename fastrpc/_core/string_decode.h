/* From the text between a JSON string's quotes to a str, with escapes and beyond ASCII.
 *
 * Two steps. While a line is read, `fastrpc_over_escape` accepts one escape of RFC 8259 section 7, and hands
 * over everything else unchecked. When the value is wanted, `fastrpc_make_text` makes the str, exactly the one
 * that CPython's decoder would make: of the narrowest kind its characters fit. Its caller has checked UTF-8
 * and escapes. It reads no byte after the text.
 *
 * Plain characters go 16 at a step, others one by one. A text is walked once, or twice where it is beyond
 * ASCII: its length and its kind come first. 40 bytes cost 25 ns; 1 MB costs 15 µs where all is ASCII, 80
 * with a \n in each line, 60 to 85 with few wider characters, 300 to 400 with nothing else. No byte tells
 * how wide an escaped character is: a text with escapes is begun in the kind that its bytes need, begun
 * again for an escape that needs a wider one, and cut at its end. */

#ifndef FASTRPC_STRING_DECODE_H
#define FASTRPC_STRING_DECODE_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

struct fastrpc_escape_letters {
    signed char digit[256]; /* of a hexadecimal digit its value, else -1 */
    char meaning[256];      /* of a letter after a backslash, 0 for any other */

    constexpr fastrpc_escape_letters() : digit(), meaning() {
        for (int letter = 0; letter < 256; ++letter) { digit[letter] = -1; }
        for (int value = 0; value < 16; ++value) {
            digit[static_cast<int>("0123456789abcdef"[value])] = static_cast<signed char>(value);
            digit[static_cast<int>("0123456789ABCDEF"[value])] = static_cast<signed char>(value);
        }
        for (int which = 0; which < 8; ++which) {
            meaning[static_cast<int>("\"\\/bfnrt"[which])] = "\"\\/\b\f\n\r\t"[which];
        }
    }
};
static constexpr fastrpc_escape_letters fastrpc_letters;

/* The number that four hexadecimal digits make; negative where one of them is none. */
static inline int fastrpc_four_digits(const char *at) {
    const signed char *digit = fastrpc_letters.digit;
    return digit[(unsigned char)at[0]] * 4096 | digit[(unsigned char)at[1]] * 256
        | digit[(unsigned char)at[2]] * 16 | digit[(unsigned char)at[3]];
}

/* Over one escape, or an escaped surrogate pair, from the backslash on; NULL for any other. Looks at up to
 * 12 bytes, so that many must be readable. */
static inline const char *fastrpc_over_escape(const char *at) {
    if (fastrpc_letters.meaning[(unsigned char)at[1]]) { return at + 2; }
    if (at[1] != 'u') { return NULL; }
    int code = fastrpc_four_digits(at + 2);
    if (code < 0) { return NULL; }
    if (code < 0xD800 || code > 0xDFFF) { return at + 6; }
    if (code > 0xDBFF || at[6] != '\\' || at[7] != 'u') { return NULL; }
    code = fastrpc_four_digits(at + 8);
    return code >= 0xDC00 && code <= 0xDFFF ? at + 12 : NULL;
}

/* Over a checked escape, with its character. */
static inline const char *fastrpc_unescape(const char *at, uint32_t *character) {
    if (at[1] != 'u') {
        *character = (unsigned char)fastrpc_letters.meaning[(unsigned char)at[1]];
        return at + 2;
    }
    int code = fastrpc_four_digits(at + 2);
    if (code < 0xD800 || code > 0xDFFF) {
        *character = (uint32_t)code;
        return at + 6;
    }
    *character = 0x10000u + (uint32_t)((code - 0xD800) * 1024 + fastrpc_four_digits(at + 8) - 0xDC00);
    return at + 12;
}

/* Over one character of UTF-8. */
static inline const char *fastrpc_decode(const char *at, uint32_t *character) {
    const unsigned char *byte = (const unsigned char *)at;
    if (byte[0] < 0x80) {
        *character = byte[0];
        return at + 1;
    }
    if (byte[0] < 0xE0) {
        *character = (byte[0] & 31u) << 6 | (byte[1] & 63u);
        return at + 2;
    }
    if (byte[0] < 0xF0) {
        *character = (byte[0] & 15u) << 12 | (byte[1] & 63u) << 6 | (byte[2] & 63u);
        return at + 3;
    }
    *character = (byte[0] & 7u) << 18 | (byte[1] & 63u) << 12 | (byte[2] & 63u) << 6 | (byte[3] & 63u);
    return at + 4;
}

/* The limit of the narrowest kind that holds a character. */
static inline uint32_t fastrpc_limit(uint32_t character) {
    return character < 0x80 ? 0x7F : character < 0x100 ? 0xFF : character < 0x10000 ? 0xFFFF : 0x10FFFF;
}

/* How many characters UTF-8 holds, an escape counted as its bytes; `highest` becomes the highest of it and
 * the bytes. */
static inline Py_ssize_t fastrpc_count_some(const char *at, Py_ssize_t size, unsigned char *highest) {
    Py_ssize_t length = 0;
    for (Py_ssize_t i = 0; i < size; ++i) {
        unsigned char byte = (unsigned char)at[i];
        length += (byte & 0xC0) != 0x80; /* no continuation byte */
        if (byte > *highest) { *highest = byte; }
    }
    return length;
}

#ifdef __SSE2__
/* The same for whole blocks of 16; a lane counts 255 of them at most. */
static inline Py_ssize_t fastrpc_count_blocks(const char *at, Py_ssize_t blocks, unsigned char *highest) {
    const __m128i last = _mm_set1_epi8(-65); /* the highest continuation byte, as a signed one */
    __m128i most = _mm_setzero_si128(), length = _mm_setzero_si128();
    while (blocks > 0) {
        Py_ssize_t some = blocks < 255 ? blocks : 255;
        __m128i count = _mm_setzero_si128();
        blocks -= some;
        for (; some > 0; --some, at += 16) {
            __m128i block = _mm_loadu_si128((const __m128i *)at);
            most = _mm_max_epu8(most, block);
            count = _mm_sub_epi8(count, _mm_cmpgt_epi8(block, last));
        }
        length = _mm_add_epi64(length, _mm_sad_epu8(count, _mm_setzero_si128()));
    }
    unsigned char lanes[16];
    uint64_t halves[2];
    _mm_storeu_si128((__m128i *)lanes, most);
    _mm_storeu_si128((__m128i *)halves, length);
    fastrpc_count_some((const char *)lanes, 16, highest);
    return (Py_ssize_t)(halves[0] + halves[1]);
}
#endif

/* fastrpc_count_some() for all of a text; `most` becomes the limit of the kind that its bytes need. */
static inline Py_ssize_t fastrpc_measure(const char *at, Py_ssize_t size, uint32_t *most) {
    unsigned char highest = 0;
    Py_ssize_t length = 0;
#ifdef __SSE2__
    Py_ssize_t whole = size & ~(Py_ssize_t)15;
    length = fastrpc_count_blocks(at, whole / 16, &highest);
    at += whole;
    size -= whole;
#endif
    length += fastrpc_count_some(at, size, &highest);
    *most = highest < 0x80 ? 0x7F : highest < 0xC4 ? 0xFF : highest < 0xF0 ? 0xFFFF : 0x10FFFF;
    return length;
}

template <bool escaped>
static inline bool fastrpc_is_plain(char byte) {
    return (unsigned char)byte < 0x80 && !(escaped && byte == '\\');
}

/* Copies eight characters, and says whether all are plain ones. */
template <bool escaped, typename Character>
static inline bool fastrpc_copy_8(const char *from, Character *to) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t bytes;
    memcpy(&bytes, from, 8);
    for (int i = 0; i < 8; ++i) { to[i] = (unsigned char)from[i]; }
    uint64_t slashes = bytes ^ ones * '\\';
    return !((escaped ? bytes | ((slashes - ones) & ~slashes) : bytes) & tops);
}

#ifdef __SSE2__
static inline void fastrpc_widen(__m128i block, uint8_t *to) { _mm_storeu_si128((__m128i *)to, block); }

static inline void fastrpc_widen(__m128i block, uint16_t *to) {
    const __m128i zero = _mm_setzero_si128();
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi8(block, zero));
    _mm_storeu_si128((__m128i *)(to + 8), _mm_unpackhi_epi8(block, zero));
}

static inline void fastrpc_widen(__m128i block, uint32_t *to) {
    const __m128i zero = _mm_setzero_si128();
    __m128i low = _mm_unpacklo_epi8(block, zero), high = _mm_unpackhi_epi8(block, zero);
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(low, zero));
    _mm_storeu_si128((__m128i *)(to + 4), _mm_unpackhi_epi16(low, zero));
    _mm_storeu_si128((__m128i *)(to + 8), _mm_unpacklo_epi16(high, zero));
    _mm_storeu_si128((__m128i *)(to + 12), _mm_unpackhi_epi16(high, zero));
}

/* Copies sixteen characters, and says which of them are not plain: a bit for each. */
template <bool escaped, typename Character>
static inline unsigned fastrpc_copy_16(const char *from, Character *to) {
    __m128i block = _mm_loadu_si128((const __m128i *)from);
    fastrpc_widen(block, to);
    if (escaped) { block = _mm_or_si128(block, _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'))); }
    return (unsigned)_mm_movemask_epi8(block);
}
#endif

/* Should the character at `at` be taken by itself? Steps do not pay for a space between two words. */
template <bool escaped>
static inline bool fastrpc_goes_alone(const char *at, const char *end) {
    if (at == end) { return false; }
    return !fastrpc_is_plain<escaped>(at[0]) || (end - at > 1 && !fastrpc_is_plain<escaped>(at[1]));
}

/* Writes a text's characters from `to` on, and returns where they end; at the first escaped one beyond `most`
 * it puts that one's kind's limit there and returns NULL. A step writes all its places, and the next one
 * over those that were not plain. */
template <bool escaped, typename Character>
static Character *fastrpc_fill(
    const char *at, const char *end, Character *to, const Character *to_end, uint32_t *most
) {
    while (at < end) {
#ifdef __SSE2__
        if ((!escaped || end - at >= 16) && to_end - to >= 16) {
            unsigned odd = fastrpc_copy_16<escaped>(at, to);
            if (!odd) { /* a branch, so that the next step need not wait for this one */
                at += 16;
                to += 16;
                continue;
            }
            at += __builtin_ctz(odd);
            to += __builtin_ctz(odd);
        } else
#endif
        if (end - at >= 8 && to_end - to >= 8) {
            if (fastrpc_copy_8<escaped>(at, to)) {
                at += 8;
                to += 8;
                continue;
            }
            for (; fastrpc_is_plain<escaped>(*at); ++at) { *to++ = (unsigned char)*at; }
        }
        do {
            uint32_t character;
            if (escaped && *at == '\\') {
                at = fastrpc_unescape(at, &character);
                if (character > *most) {
                    *most = fastrpc_limit(character);
                    return NULL;
                }
            } else {
                at = fastrpc_decode(at, &character);
            }
            *to++ = (Character)character;
        } while (fastrpc_goes_alone<escaped>(at, end));
    }
    return to;
}

/* Fills a new str, with `room` for characters, and returns how many there are; -1 if `most` was too low. */
template <bool escaped, typename Character>
static inline Py_ssize_t fastrpc_fill_str(
    Character *to, Py_ssize_t room, const char *data, Py_ssize_t size, uint32_t *most
) {
    const Character *end = fastrpc_fill<escaped>(data, data + size, to, to + room, most);
    return end ? end - to : -1;
}

template <bool escaped>
static inline Py_ssize_t fastrpc_fill_any(
    PyObject *text, Py_ssize_t room, const char *data, Py_ssize_t size, uint32_t *most
) {
    if (*most <= 0xFF) {
        return fastrpc_fill_str<escaped>(PyUnicode_1BYTE_DATA(text), room, data, size, most);
    }
    if (*most <= 0xFFFF) {
        return fastrpc_fill_str<escaped>(PyUnicode_2BYTE_DATA(text), room, data, size, most);
    }
    return fastrpc_fill_str<escaped>(PyUnicode_4BYTE_DATA(text), room, data, size, most);
}

/* Makes the str of a text with escapes: begun with `most`, which its bytes need, and begun again for an
 * escaped character that needs more. */
static PyObject *fastrpc_make_escaped(const char *data, Py_ssize_t size, Py_ssize_t room, uint32_t most) {
    for (;;) {
        PyObject *text = PyUnicode_New(room, (Py_UCS4)most);
        if (!text) { return NULL; }
        Py_ssize_t length = fastrpc_fill_any<true>(text, room, data, size, &most);
        if (length == room || (length >= 0 && PyUnicode_Resize(&text, length) == 0)) { return text; }
        Py_DECREF(text);
        if (length >= 0) { return NULL; }
    }
}

/* Makes the str of a text, whose bytes are or are not all ASCII, with or without escapes. */
static PyObject *fastrpc_make_text(const char *data, Py_ssize_t size, int beyond_ascii, int escaped) {
    uint32_t most = 0x7F;
    Py_ssize_t length = beyond_ascii ? fastrpc_measure(data, size, &most) : size;
    if (escaped) { return fastrpc_make_escaped(data, size, length, most); }
#ifndef __SSE2__
    if (beyond_ascii) { return PyUnicode_DecodeUTF8(data, size, NULL); } /* as fast as steps of eight are */
#endif
    PyObject *text = PyUnicode_New(length, (Py_UCS4)most);
    if (!text) { return NULL; }
    if (most == 0x7F) {
        memcpy(PyUnicode_1BYTE_DATA(text), data, (size_t)size);
    } else {
        fastrpc_fill_any<false>(text, length, data, size, &most);
    }
    return text;
}

#endif
