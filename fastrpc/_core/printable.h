/* How many bytes from here on are printable ASCII: 16 at a step. For the lines of an access log. */
#ifndef FASTRPC_PRINTABLE_H
#define FASTRPC_PRINTABLE_H

#include <Python.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Return the number of bytes in front of the first one, up to `end`, that is not in 0x20 to 0x7e; with a `special`,
 * that or the backslash ends them, too. Reads no byte after `end`. */
static inline Py_ssize_t fastrpc_printable(const unsigned char *at, const unsigned char *end, char special) {
    const unsigned char *start = at;
#ifdef __SSE2__
    const __m128i first = _mm_set1_epi8(0x1f), last = _mm_set1_epi8(0x7f);
    const __m128i mark = _mm_set1_epi8(special), escape = _mm_set1_epi8(special ? '\\' : 0);
    for (; end - at >= 16; at += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)at);
        /* Signed: what is beyond ASCII is below 0x20, too. */
        __m128i plain = _mm_and_si128(_mm_cmpgt_epi8(block, first), _mm_cmplt_epi8(block, last));
        __m128i odd = _mm_or_si128(_mm_cmpeq_epi8(block, mark), _mm_cmpeq_epi8(block, escape));
        int mask = _mm_movemask_epi8(_mm_andnot_si128(odd, plain));
        if (mask != 0xffff) { return at - start + __builtin_ctz(~(unsigned)mask); }
    }
#endif
    for (; at < end; ++at) {
        if (*at < 0x20 || *at >= 0x7f || (special && (*at == (unsigned char)special || *at == '\\'))) { break; }
    }
    return at - start;
}

#endif
