/* Compilers differ in what they think worth inlining: clang leaves calls where gcc does not, three percent
 * of an echo. On the likely path it is not left to them. */

#ifndef FASTRPC_INLINE_H
#define FASTRPC_INLINE_H

#define FASTRPC_INLINE static inline __attribute__((always_inline))

#endif
