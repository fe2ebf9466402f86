/* Writes a plain value as JSON, in two places at once: as it is, and escaped as part of a JSON string.
 *
 * A tool's result goes out both ways. Written together, the second costs a few copies; made of the first, it
 * would cost a pass over text in which every eighth byte is a quote. Plain are exact str, int, float, bool,
 * None, and exact dict, list and tuple of plain values with str as keys; no NaN, no half of a surrogate
 * pair, no integer longer than the interpreter writes, no more than FASTRPC_DEEPEST levels. The walk runs no
 * Python code, so that it borrows its references. Whose buffers they are, and how they grow, is the caller's
 * affair.
 *
 * A double's text is the one that repr() gives: the shortest that reads back as the same double, and of those
 * the nearest to it. Schubfach finds the digits (R. Giulietti, "The Schubfach way to render doubles"): one
 * multiplication by a power of ten, in 128 bits, for the double and for each end of the interval that
 * rounds to it. A power is made when it is wanted first: most values want three or four of the 617. */

#ifndef FASTRPC_JSON_WRITER_H
#define FASTRPC_JSON_WRITER_H

#include <Python.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "string_encode.h"

enum {
    FASTRPC_LEAST_POWER = -292,
    FASTRPC_POWERS = 617,
    FASTRPC_WORDS = 13, /* of 64 bits: 5^324 and a bit more */
    FASTRPC_SPARE = 128, /* holds a number, punctuation, and what copies in steps of fixed size run over */
    FASTRPC_TEXT_PIECE = 1024, /* of a text; room is made for one piece at its worst, if it needs escapes */
    FASTRPC_DEEPEST = 200
};

/* ---------------------------------------------------------------------------------------- integers */

static const char fastrpc_pairs[201] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/* How many digits a number has. */
static inline int fastrpc_count_digits(uint64_t number) {
    static const uint64_t powers[] = {
        0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000u,
        100000000000u, 1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u,
        100000000000000000u, 1000000000000000000u, 10000000000000000000u,
    };
    int most = (64 - __builtin_clzll(number | 1)) * 1233 >> 12; /* as many, or one less */
    return most + (number >= powers[most]);
}

/* Writes a number of so many digits. */
static inline void fastrpc_put_counted(char *to, uint64_t number, int count) {
    while (number >= 100) {
        count -= 2;
        memcpy(to + count, fastrpc_pairs + number % 100 * 2, 2);
        number /= 100;
    }
    if (number >= 10) {
        memcpy(to, fastrpc_pairs + number * 2, 2);
    } else {
        *to = (char)('0' + number);
    }
}

static inline char *fastrpc_put_digits(char *to, uint64_t number) {
    int count = fastrpc_count_digits(number);
    fastrpc_put_counted(to, number, count);
    return to + count;
}

static inline char *fastrpc_put_integer(char *to, int64_t number) {
    if (number >= 0) { return fastrpc_put_digits(to, (uint64_t)number); }
    *to = '-';
    return fastrpc_put_digits(to + 1, -(uint64_t)number);
}

/* ----------------------------------------------------------------------------------------- doubles */

struct fastrpc_binary {
    uint64_t significand;
    int exponent;  /* of two */
    int lopsided;  /* the next smaller double is half as far away as the next greater */
    int power;     /* the double, times ten to this, has 16 or 17 digits before the point */
};

struct fastrpc_decimal {
    uint64_t digits;
    int exponent; /* of ten */
};

/* ceil(10^k * 2^(127 - floor(log2(10^k)))), high half first; the high half is zero until it is made. */
static uint64_t fastrpc_powers[FASTRPC_POWERS][2];

/* Doubles a number of many words, lowest first. */
static inline void fastrpc_double_words(uint64_t *words) {
    uint64_t bit = 0;
    for (int at = 0; at < FASTRPC_WORDS; ++at) {
        uint64_t word = words[at];
        words[at] = word << 1 | bit;
        bit = word >> 63;
    }
}

static inline int fastrpc_reaches(const uint64_t *words, const uint64_t *others) {
    int at = FASTRPC_WORDS - 1;
    while (at > 0 && words[at] == others[at]) { --at; }
    return words[at] >= others[at];
}

static inline void fastrpc_subtract_words(uint64_t *words, const uint64_t *others) {
    uint64_t borrow = 0;
    for (int at = 0; at < FASTRPC_WORDS; ++at) {
        unsigned __int128 difference = (unsigned __int128)words[at] - others[at] - borrow;
        words[at] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
}

/* Makes the first 128 bits of a power of ten, which are those of the power of five, rounded up. */
static void fastrpc_make_power(int power) {
    uint64_t five[FASTRPC_WORDS] = {1}, rest[FASTRPC_WORDS] = {1}, any = 0;
    unsigned __int128 bits = 0;
    for (int left = power < 0 ? -power : power; left > 0; --left) {
        unsigned __int128 product = 0;
        for (int at = 0; at < FASTRPC_WORDS; ++at) {
            product += (unsigned __int128)five[at] * 5;
            five[at] = (uint64_t)product;
            product >>= 64;
        }
    }
    if (power < 0) { /* long division of a power of two */
        while (!fastrpc_reaches(rest, five)) { fastrpc_double_words(rest); }
        for (int count = 0; count < 128; ++count) {
            int one = fastrpc_reaches(rest, five);
            if (one) { fastrpc_subtract_words(rest, five); }
            bits = bits << 1 | (unsigned)one;
            fastrpc_double_words(rest);
        }
        any = 1;
    } else {
        while (!(five[FASTRPC_WORDS - 1] >> 63)) { fastrpc_double_words(five); }
        bits = (unsigned __int128)five[FASTRPC_WORDS - 1] << 64 | five[FASTRPC_WORDS - 2];
        for (int at = 0; at < FASTRPC_WORDS - 2; ++at) { any |= five[at]; }
    }
    bits += any != 0;
    fastrpc_powers[power - FASTRPC_LEAST_POWER][0] = (uint64_t)(bits >> 64);
    fastrpc_powers[power - FASTRPC_LEAST_POWER][1] = (uint64_t)bits;
}

/* Takes a finite double above zero apart. */
static inline struct fastrpc_binary fastrpc_apart(double number) {
    struct fastrpc_binary parts;
    uint64_t bits;
    memcpy(&bits, &number, 8);
    uint64_t fraction = bits & 0xFFFFFFFFFFFFFu;
    int biased = (int)(bits >> 52 & 0x7FF);
    parts.significand = biased ? fraction | 1ull << 52 : fraction;
    parts.exponent = (biased ? biased : 1) - 1075;
    parts.lopsided = fraction == 0 && biased > 1;
    /* floor(log10(2^q)), or floor(log10(3/4 * 2^q)) */
    parts.power = -((parts.exponent * 1262611 - (parts.lopsided ? 524031 : 0)) >> 22);
    return parts;
}

/* The number's product with a power of ten, its last bit set where bits have been cut off. */
static inline uint64_t fastrpc_times(const uint64_t power[2], uint64_t number) {
    unsigned __int128 low = (unsigned __int128)power[1] * number;
    unsigned __int128 high = (unsigned __int128)power[0] * number + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* The shortest decimal that rounds to the double, nearest first. Everything is counted in quarters, so that
 * the middle between two decimals is a whole number. */
static inline struct fastrpc_decimal fastrpc_shortest(const struct fastrpc_binary *parts) {
    const uint64_t *power = fastrpc_powers[parts->power - FASTRPC_LEAST_POWER];
    if (power[0] == 0) { fastrpc_make_power(parts->power); }
    int shift = parts->exponent + (parts->power * 1741647 >> 19) + 1;
    uint64_t four = parts->significand * 4, odd = parts->significand & 1;
    uint64_t lowest = fastrpc_times(power, (four - 2 + (uint64_t)parts->lopsided) << shift) + odd;
    uint64_t number = fastrpc_times(power, four << shift);
    uint64_t highest = fastrpc_times(power, (four + 2) << shift) - odd;
    uint64_t below = number / 4;
    struct fastrpc_decimal decimal = {below, -parts->power};
    if (below >= 10) { /* with a digit less? */
        uint64_t tens = below / 10;
        int under = lowest <= 40 * tens, over = 40 * tens + 40 <= highest;
        if (under != over) {
            decimal.digits = tens + (uint64_t)over;
            decimal.exponent += 1;
            return decimal;
        }
    }
    int under = lowest <= 4 * below, over = 4 * below + 4 <= highest;
    if (under != over) {
        decimal.digits += (uint64_t)over;
    } else {
        uint64_t middle = 4 * below + 2;
        decimal.digits += number > middle || (number == middle && (below & 1));
    }
    return decimal;
}

static inline void fastrpc_drop_zeros(struct fastrpc_decimal *decimal) {
    static const uint64_t steps[] = {100000000, 10000, 100, 10};
    static const int sizes[] = {8, 4, 2, 1};
    for (int step = 0; step < 4; ++step) {
        while (decimal->digits % steps[step] == 0) {
            decimal->digits /= steps[step];
            decimal->exponent += sizes[step];
        }
    }
}

/* Writes digits with a point or an exponent, as repr() does: 24 bytes, in steps that run over by 20. */
static inline char *fastrpc_put_decimal(char *to, struct fastrpc_decimal decimal) {
    char digits[40];
    fastrpc_drop_zeros(&decimal);
    int count = (int)(fastrpc_put_digits(digits, decimal.digits) - digits);
    int point = count + decimal.exponent; /* the number of digits before it */
    if (point > 16 || point <= -4) {
        *to++ = digits[0];
        if (count > 1) {
            *to++ = '.';
            memcpy(to, digits + 1, (size_t)count - 1);
            to += count - 1;
        }
        *to++ = 'e';
        *to++ = point > 0 ? '+' : '-';
        uint64_t exponent = (uint64_t)(point > 0 ? point - 1 : 1 - point);
        if (exponent < 10) { *to++ = '0'; }
        return fastrpc_put_digits(to, exponent);
    }
    if (point <= 0) {
        memcpy(to, "0.000", 5);
        to += 2 - point;
        memcpy(to, digits, 17);
        return to + count;
    }
    if (count > point) {
        memcpy(to, digits, 17);
        memcpy(to + point + 1, digits + point, 17);
        to[point] = '.';
        return to + count + 1;
    }
    memcpy(to, digits, (size_t)count);
    memset(to + count, '0', (size_t)(point - count));
    memcpy(to + point, ".0", 2);
    return to + point + 2;
}

/* Writes a double below 1e9 that has six decimals at most, as people's numbers have; NULL for any other.
 * A decimal of 15 digits is the only one that is so near to its double: what divides back is the number. */
static inline char *fastrpc_put_few_decimals(char *to, double number) {
    if (!(number < 1e9) || (number < 1e-4 && number != 0)) { return NULL; }
    uint64_t millionths = (uint64_t)(number * 1e6 + 0.5);
    if ((double)millionths / 1e6 != number) { return NULL; }
    uint32_t whole = (uint32_t)(millionths / 1000000), rest = (uint32_t)(millionths % 1000000);
    to = fastrpc_put_digits(to, whole);
    *to = '.';
    memcpy(to + 1, fastrpc_pairs + rest / 10000 * 2, 2);
    memcpy(to + 3, fastrpc_pairs + rest / 100 % 100 * 2, 2);
    memcpy(to + 5, fastrpc_pairs + rest % 100 * 2, 2);
    char *end = to + 7;
    while (end > to + 2 && end[-1] == '0') { --end; }
    return end;
}

/* ----------------------------------------------------------------------------------------- strings */

/* Copy ASCII to two places if nothing in it needs an escape, else return 0 with rubbish written. */

static inline int fastrpc_copy_short(char *one, char *two, const char *from, Py_ssize_t size) {
    if (size >= 8) { /* and at most 16 */
        uint64_t first, last;
        memcpy(&first, from, 8);
        memcpy(&last, from + size - 8, 8);
        memcpy(one, &first, 8);
        memcpy(one + size - 8, &last, 8);
        memcpy(two, &first, 8);
        memcpy(two + size - 8, &last, 8);
        return fastrpc_plain_8(first) & fastrpc_plain_8(last);
    }
    if (size >= 4) {
        uint32_t first, last;
        memcpy(&first, from, 4);
        memcpy(&last, from + size - 4, 4);
        memcpy(one, &first, 4);
        memcpy(one + size - 4, &last, 4);
        memcpy(two, &first, 4);
        memcpy(two + size - 4, &last, 4);
        return fastrpc_plain_8((uint64_t)last << 32 | first);
    }
    int odd = 0;
    for (Py_ssize_t at = 0; at < size; ++at) {
        odd |= fastrpc_escape[(unsigned char)from[at]];
        one[at] = two[at] = from[at];
    }
    return odd == 0;
}

static inline int fastrpc_plain_16(const char *from) {
#ifdef __SSE2__
    return fastrpc_odd_16(fastrpc_narrow_16(from, 1)) == 0;
#else
    uint64_t halves[2];
    memcpy(halves, from, 16);
    return fastrpc_plain_8(halves[0]) & fastrpc_plain_8(halves[1]);
#endif
}

static inline int fastrpc_copy_long(char *one, char *two, const char *from, Py_ssize_t size) {
    Py_ssize_t at = 0;
    while (fastrpc_plain_16(from + at)) {
        memcpy(one + at, from + at, 16);
        memcpy(two + at, from + at, 16);
        at += 16;
        if (at >= size) { return 1; }
        if (at + 16 > size) { at = size - 16; }
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------- the walk */

/* The write positions; raw is NULL once writing has failed. Two pointers would both be moved at each write,
 * and a compiler that moves them as one vector makes every write wait for the one before. */
struct fastrpc_pens {
    char *raw;
    ptrdiff_t ahead; /* distance from raw to the escaped copy, in the other buffer */
};
#define FASTRPC_TEXT(PENS) ((PENS).raw + (PENS).ahead)

/* Two buffers. What grows in one by n bytes grows in the other by 2 n at most, so one limit does for both. */
struct fastrpc_page {
    char *limit; /* raw may be written to here, and FASTRPC_SPARE bytes follow it */
    struct fastrpc_pens pens;
    void *raw_owner;
    void *text_owner;
    int (*make_room)(struct fastrpc_page *page, Py_ssize_t size); /* at the pens; may move them */
};

static const struct fastrpc_pens fastrpc_failed = {NULL, 0};

/* A function that is reached by a tail call: what calls it then needs no frame. */
#define FASTRPC_STEP static __attribute__((noinline)) struct fastrpc_pens

FASTRPC_STEP fastrpc_make_room(struct fastrpc_page *page, struct fastrpc_pens pens, Py_ssize_t size) {
    page->pens = pens;
    return page->make_room(page, size) < 0 ? fastrpc_failed : page->pens;
}

/* Room for so many bytes; the spare ones need not be asked for between two calls of this. */
#define FASTRPC_ROOM(PAGE, PENS, SIZE)                                                                \
    if ((PAGE)->limit - (PENS).raw < (SIZE)) {                                                        \
        PENS = fastrpc_make_room(PAGE, PENS, SIZE);                                                   \
        if ((PENS).raw == NULL) { return PENS; }                                                      \
    }

static inline struct fastrpc_pens fastrpc_both(struct fastrpc_pens pens, const char *word, size_t size) {
    memcpy(pens.raw, word, size);
    memcpy(FASTRPC_TEXT(pens), word, size);
    pens.raw += size;
    return pens;
}

static inline struct fastrpc_pens fastrpc_quote(struct fastrpc_pens pens) {
    *pens.raw = '"';
    memcpy(FASTRPC_TEXT(pens), "\\\"", 2);
    pens.raw += 1;
    pens.ahead += 1;
    return pens;
}

/* Writes the second copy of a number, up to `end`. */
static inline struct fastrpc_pens fastrpc_number(struct fastrpc_pens pens, char *end) {
    memcpy(FASTRPC_TEXT(pens), pens.raw, 32);
    pens.raw = end;
    return pens;
}

/* Writes an integer of more than one of CPython's digits. */
FASTRPC_STEP fastrpc_put_long(struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *integer) {
    int overflow;
    int64_t number = PyLong_AsLongLongAndOverflow(integer, &overflow);
    if (!overflow) { return fastrpc_number(pens, fastrpc_put_integer(pens.raw, number)); }
    PyObject *digits = PyLong_Type.tp_repr(integer);
    if (digits == NULL) {
        if (PyErr_ExceptionMatches(PyExc_ValueError)) { PyErr_Clear(); } /* longer than it writes */
        return fastrpc_failed;
    }
    Py_ssize_t size = PyUnicode_GET_LENGTH(digits);
    if (page->limit - pens.raw < size) { pens = fastrpc_make_room(page, pens, size); }
    if (pens.raw != NULL) { pens = fastrpc_both(pens, (const char *)PyUnicode_DATA(digits), (size_t)size); }
    Py_DECREF(digits);
    return pens;
}

FASTRPC_STEP fastrpc_put_int(struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *integer) {
#if PY_VERSION_HEX >= 0x030C0000
    if (!PyUnstable_Long_IsCompact((PyLongObject *)integer)) { return fastrpc_put_long(page, pens, integer); }
    int64_t number = PyUnstable_Long_CompactValue((PyLongObject *)integer);
#else
    int64_t number = Py_SIZE(integer); /* of digits, with the sign */
    if (number < -1 || number > 1) { return fastrpc_put_long(page, pens, integer); }
    number *= ((PyLongObject *)integer)->ob_digit[0];
#endif
    return fastrpc_number(pens, fastrpc_put_integer(pens.raw, number));
}

/* Writes a positive double of any digits. */
FASTRPC_STEP fastrpc_put_any_double(struct fastrpc_pens pens, char *to, double number) {
    struct fastrpc_binary parts = fastrpc_apart(number);
    return fastrpc_number(pens, fastrpc_put_decimal(to, fastrpc_shortest(&parts)));
}

FASTRPC_STEP fastrpc_put_double(struct fastrpc_pens pens, PyObject *value) {
    double number = PyFloat_AS_DOUBLE(value);
    char *to = pens.raw;
    if (number - number != 0) { return fastrpc_failed; } /* NaN, infinity */
    if (signbit(number)) {
        *to++ = '-';
        number = -number;
    }
    char *end = fastrpc_put_few_decimals(to, number);
    return end ? fastrpc_number(pens, end) : fastrpc_put_any_double(pens, to, number);
}

/* Writes a piece of text that has escapes, or is not ASCII. */
FASTRPC_STEP fastrpc_put_odd(
    struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *text, Py_ssize_t at, Py_ssize_t size
) {
    char *end;
    FASTRPC_ROOM(page, pens, size * 6)
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        end = fastrpc_escape_all(pens.raw, (const unsigned char *)PyUnicode_DATA(text) + at, size);
    } else {
        end = fastrpc_escape_wide(
            pens.raw, (int)PyUnicode_KIND(text), (const char *)PyUnicode_DATA(text), at, size
        );
        if (end == NULL) { return fastrpc_failed; }
    }
    char *copied = fastrpc_escape_all(FASTRPC_TEXT(pens), (const unsigned char *)pens.raw, end - pens.raw);
    pens.raw = end;
    pens.ahead = copied - end;
    return pens;
}

/* Writes any text. */
FASTRPC_STEP fastrpc_put_long_text(struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *text) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(text), at = 0, piece;
    int ascii = PyUnicode_IS_COMPACT_ASCII(text);
    const char *data = (const char *)PyUnicode_DATA(text);
    pens = fastrpc_quote(pens);
    for (; at < size; at += piece) {
        piece = size - at <= FASTRPC_TEXT_PIECE ? size - at : FASTRPC_TEXT_PIECE;
        FASTRPC_ROOM(page, pens, piece)
        if (ascii && piece >= 16 && fastrpc_copy_long(pens.raw, FASTRPC_TEXT(pens), data + at, piece)) {
            pens.raw += piece;
        } else {
            pens = fastrpc_put_odd(page, pens, text, at, piece);
            if (pens.raw == NULL) { return pens; }
        }
    }
    return fastrpc_quote(pens);
}

FASTRPC_STEP fastrpc_put_text(struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *text) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(text);
    if (size <= 16 && PyUnicode_IS_COMPACT_ASCII(text)) {
        const char *data = (const char *)((PyASCIIObject *)text + 1);
        struct fastrpc_pens open = fastrpc_quote(pens);
        if (fastrpc_copy_short(open.raw, FASTRPC_TEXT(open), data, size)) {
            open.raw += size;
            return fastrpc_quote(open);
        }
    }
    return fastrpc_put_long_text(page, pens, text);
}

FASTRPC_STEP fastrpc_put_with_room(
    struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *value, int depth
);
FASTRPC_STEP fastrpc_put_nested(
    struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *value, int depth
);

static inline struct fastrpc_pens
fastrpc_put_any(struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *value, int depth) {
    PyTypeObject *type = Py_TYPE(value);
    if (page->limit < pens.raw) { return fastrpc_put_with_room(page, pens, value, depth); }
    if (type == &PyUnicode_Type) { return fastrpc_put_text(page, pens, value); }
    if (type == &PyLong_Type) { return fastrpc_put_int(page, pens, value); }
    if (type == &PyFloat_Type) { return fastrpc_put_double(pens, value); }
    if (value == Py_True) { return fastrpc_both(pens, "true", 4); }
    if (value == Py_False) { return fastrpc_both(pens, "false", 5); }
    if (value == Py_None) { return fastrpc_both(pens, "null", 4); }
    return fastrpc_put_nested(page, pens, value, depth);
}

FASTRPC_STEP fastrpc_put_with_room(
    struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *value, int depth
) {
    pens = fastrpc_make_room(page, pens, 0);
    return pens.raw == NULL ? pens : fastrpc_put_any(page, pens, value, depth);
}

static inline struct fastrpc_pens
fastrpc_put_dict(struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *members, int depth) {
    Py_ssize_t position = 0;
    PyObject *name, *member;
    pens = fastrpc_both(pens, "{", 1);
    for (int first = 1; PyDict_Next(members, &position, &name, &member); first = 0) {
        FASTRPC_ROOM(page, pens, 0)
        if (!first) { pens = fastrpc_both(pens, ",", 1); }
        if (Py_TYPE(name) != &PyUnicode_Type) { return fastrpc_failed; }
        pens = fastrpc_put_text(page, pens, name);
        if (pens.raw == NULL) { return pens; }
        pens = fastrpc_put_any(page, fastrpc_both(pens, ":", 1), member, depth + 1);
        if (pens.raw == NULL) { return pens; }
    }
    FASTRPC_ROOM(page, pens, 0)
    return fastrpc_both(pens, "}", 1);
}

static inline struct fastrpc_pens
fastrpc_put_list(struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *elements, int depth) {
    PyObject **items = PySequence_Fast_ITEMS(elements);
    Py_ssize_t size = PySequence_Fast_GET_SIZE(elements);
    pens = fastrpc_both(pens, "[", 1);
    for (Py_ssize_t at = 0; at < size; ++at) {
        if (at) { pens = fastrpc_both(pens, ",", 1); }
        pens = fastrpc_put_any(page, pens, items[at], depth + 1);
        if (pens.raw == NULL) { return pens; }
    }
    FASTRPC_ROOM(page, pens, 0)
    return fastrpc_both(pens, "]", 1);
}

FASTRPC_STEP fastrpc_put_nested(
    struct fastrpc_page *page, struct fastrpc_pens pens, PyObject *value, int depth
) {
    if (depth == FASTRPC_DEEPEST) { return fastrpc_failed; }
    if (PyDict_CheckExact(value)) { return fastrpc_put_dict(page, pens, value, depth); }
    if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
        return fastrpc_put_list(page, pens, value, depth);
    }
    return fastrpc_failed;
}

/* Writes from the page's pens on. Returns 0 for a value that is not plain, and with an exception set. */
static inline int fastrpc_put_value(struct fastrpc_page *page, PyObject *value) {
    struct fastrpc_pens pens = fastrpc_put_any(page, page->pens, value, 0);
    if (pens.raw == NULL) { return 0; }
    page->pens = pens;
    return 1;
}

#endif
