/* Marks memory as not to be read, for AddressSanitizer: the part of a buffer that nothing has been read into.
 * A line lies in a buffer far larger than itself, where a step too far is still in memory that is ours. Costs
 * nothing, and does nothing, in a build without the sanitizer (`make sanitize` has it). */

#ifndef FASTRPC_POISON_H
#define FASTRPC_POISON_H

#ifdef __has_feature
#define FASTRPC_HAS_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define FASTRPC_HAS_ASAN 1
#else
#define FASTRPC_HAS_ASAN 0
#endif

#if FASTRPC_HAS_ASAN
#include <sanitizer/asan_interface.h>
#define FASTRPC_POISON(FROM, SIZE) __asan_poison_memory_region(FROM, (size_t)(SIZE))
#define FASTRPC_UNPOISON(FROM, SIZE) __asan_unpoison_memory_region(FROM, (size_t)(SIZE))
#else
#define FASTRPC_POISON(FROM, SIZE) ((void)0)
#define FASTRPC_UNPOISON(FROM, SIZE) ((void)0)
#endif

#endif
