/* Sliding windows: how many requests a key has made lately, in memory that several processes may share.

   A cell counts them by slices of a twentieth of the window. The slices that count are the current one and the
   twenty before it, so no stretch of time as long as the window ever has more requests than the limit. Nothing is
   locked: counters and cells change by compare-and-swap. Processes that take at the same moment may together take
   one request too many for each process but one. A cell whose window has passed may be claimed for another key. */
#ifndef FASTRPC_SLIDING_WINDOW_H
#define FASTRPC_SLIDING_WINDOW_H

#include <stddef.h>
#include <stdint.h>

enum { FASTRPC_SLICES = 20, FASTRPC_PROBES = 32 };

typedef struct {
    uint64_t key;                         /* 0: free */
    int64_t until;                        /* when its window has passed, in nanoseconds of the monotonic clock */
    uint64_t slices[FASTRPC_SLICES + 1];  /* the slice's number in the upper half, its count in the lower */
    uint64_t lease;                       /* of a leased limit: when it ends, in milliseconds, in the upper half; in the
                                             lower what is left of it. A cell takes three cache lines */
} fastrpc_window;

/* Return the key's cell; NULL if all cells where it may be are in use. `count` is a power of two. */
static inline fastrpc_window *fastrpc_window_of(fastrpc_window *cells, size_t count, uint64_t key, int64_t now) {
    for (;;) {
        fastrpc_window *spare = NULL;
        uint64_t spare_key = 0;
        for (size_t probe = 0; probe < FASTRPC_PROBES; probe++) {
            fastrpc_window *cell = &cells[(key + probe) & (count - 1)];
            uint64_t found = __atomic_load_n(&cell->key, __ATOMIC_ACQUIRE);
            if (found == key) {
                return cell;
            }
            if (spare == NULL && (found == 0 || __atomic_load_n(&cell->until, __ATOMIC_ACQUIRE) <= now)) {
                spare = cell;
                spare_key = found;
            }
            if (found == 0) {
                break;
            }
        }
        if (spare == NULL ||
            __atomic_compare_exchange_n(&spare->key, &spare_key, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return spare;
        }
    }
}

/* Take one of `limit` requests in slices of so many nanoseconds: return 0, or the nanoseconds until one is
   allowed; nothing is taken then. */
static inline int64_t fastrpc_window_take(fastrpc_window *cell, int64_t now, int64_t slice, uint32_t limit) {
    uint32_t current = (uint32_t)(now / slice);
    uint64_t *counter = &cell->slices[(now / slice) % (FASTRPC_SLICES + 1)];
    uint64_t found = __atomic_load_n(counter, __ATOMIC_ACQUIRE);
    for (;;) {
        uint32_t counts[FASTRPC_SLICES + 1] = {0}; /* by age in slices */
        uint64_t total = 0;
        for (size_t at = 0; at <= FASTRPC_SLICES; at++) {
            uint64_t value = __atomic_load_n(&cell->slices[at], __ATOMIC_ACQUIRE);
            uint32_t age = current - (uint32_t)(value >> 32);
            if (age <= FASTRPC_SLICES) {
                counts[age] = (uint32_t)value;
                total += (uint32_t)value;
            }
        }
        if (total >= limit) {
            int64_t wait = slice - now % slice;
            for (int age = FASTRPC_SLICES; age > 0; age--) {
                total -= counts[age];
                if (total < limit) {
                    break;
                }
                wait += slice;
            }
            return wait;
        }
        uint64_t next = (uint32_t)(found >> 32) == current ? found + 1 : ((uint64_t)current << 32) + 1;
        if (__atomic_compare_exchange_n(counter, &found, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            __atomic_store_n(&cell->until, now + (FASTRPC_SLICES + 1) * slice, __ATOMIC_RELEASE);
            return 0;
        }
    }
}

/* Give back the request that was taken last. */
static inline void fastrpc_window_give_back(fastrpc_window *cell, int64_t now, int64_t slice) {
    for (int64_t number = now / slice; number >= 0 && number > now / slice - 2; number--) {
        uint64_t *counter = &cell->slices[number % (FASTRPC_SLICES + 1)];
        uint64_t found = __atomic_load_n(counter, __ATOMIC_ACQUIRE);
        while ((uint32_t)(found >> 32) == (uint32_t)number && (uint32_t)found > 0) {
            if (__atomic_compare_exchange_n(counter, &found, found - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
                return;
            }
        }
    }
}

/* A lease: so many requests, which another store has counted already, until its end. */

static inline int fastrpc_lease_holds(uint64_t lease, int64_t now) {
    return (uint32_t)lease != 0 && (int32_t)((uint32_t)(lease >> 32) - (uint32_t)(now / 1000000)) > 0;
}

/* Take one request of the lease: return whether there was one. */
static inline int fastrpc_lease_take(fastrpc_window *cell, int64_t now) {
    uint64_t found = __atomic_load_n(&cell->lease, __ATOMIC_ACQUIRE);
    while (fastrpc_lease_holds(found, now)) {
        if (__atomic_compare_exchange_n(&cell->lease, &found, found - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return 1;
        }
    }
    return 0;
}

/* Add requests until `end`. If some are left of another lease, all end with the lease that ends first. */
static inline void fastrpc_lease_add(fastrpc_window *cell, int64_t now, uint32_t count, int64_t end) {
    uint64_t found = __atomic_load_n(&cell->lease, __ATOMIC_ACQUIRE);
    for (;;) {
        uint32_t until = (uint32_t)(end / 1000000), left = 0;
        if (fastrpc_lease_holds(found, now)) {
            left = (uint32_t)found;
            if ((int32_t)((uint32_t)(found >> 32) - until) < 0) { until = (uint32_t)(found >> 32); }
        }
        if (__atomic_compare_exchange_n(&cell->lease, &found, ((uint64_t)until << 32) | (left + count), 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            break;
        }
    }
    if (__atomic_load_n(&cell->until, __ATOMIC_ACQUIRE) < end) { __atomic_store_n(&cell->until, end, __ATOMIC_RELEASE); }
}

/* Give back one request, unless the lease has ended or has been collected. */
static inline void fastrpc_lease_give_back(fastrpc_window *cell, int64_t now) {
    uint64_t found = __atomic_load_n(&cell->lease, __ATOMIC_ACQUIRE);
    while (found != 0 && (int32_t)((uint32_t)(found >> 32) - (uint32_t)(now / 1000000)) > 0) {
        if (__atomic_compare_exchange_n(&cell->lease, &found, found + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return;
        }
    }
}

/* End the lease; return what was left of it. */
static inline uint32_t fastrpc_lease_end(fastrpc_window *cell) {
    return (uint32_t)__atomic_exchange_n(&cell->lease, 0, __ATOMIC_ACQ_REL);
}

#endif
