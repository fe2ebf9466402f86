/* Two ways to tell the time: a monotonic clock, and a count that costs a third of it. */
#ifndef FASTRPC_CLOCK_H
#define FASTRPC_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds. */
static inline int64_t fastrpc_clock(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The processor's count, where it has one that every core shares; else the clock. */
static inline int64_t fastrpc_ticks(void) {
#ifdef __x86_64__
    return (int64_t)__builtin_ia32_rdtsc();
#else
    return fastrpc_clock();
#endif
}

#endif
