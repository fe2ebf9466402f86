/* Which memory glibc's malloc gives back to the system (mallopt(3)); other allocators have no such limits. */
#pragma once

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Map blocks of so many bytes by themselves; give back what is free at the end of the heap beyond so much. */
static inline void fastrpc_set_thresholds(int mapped, int trimmed) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, mapped);
    mallopt(M_TRIM_THRESHOLD, trimmed);
#else
    (void)mapped;
    (void)trimmed;
#endif
}
