/* The generic cell rate algorithm over a table in memory that several processes may share.

   A slot holds the hash of a key and a theoretical arrival time in nanoseconds of the monotonic clock. Slots are
   claimed by compare-and-swap, without locks; one whose time has passed carries no information and may be
   claimed for another key. */
#ifndef FASTRPC_GCRA_H
#define FASTRPC_GCRA_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t key;  /* 0: free */
    int64_t arrival;
} fastrpc_cell;

enum { FASTRPC_CELL_PROBES = 32 };

/* Return the key's cell, NULL if all cells where it may be are in use. `count` is a power of two. */
static inline fastrpc_cell *fastrpc_cell_of(fastrpc_cell *cells, size_t count, uint64_t key, int64_t now) {
    fastrpc_cell *spare = NULL;
    uint64_t spare_key = 0;
    for (size_t probe = 0; probe < FASTRPC_CELL_PROBES; probe++) {
        fastrpc_cell *cell = &cells[(key + probe) & (count - 1)];
        uint64_t found = __atomic_load_n(&cell->key, __ATOMIC_ACQUIRE);
        if (found == key) {
            return cell;
        }
        if (spare == NULL && (found == 0 || __atomic_load_n(&cell->arrival, __ATOMIC_ACQUIRE) <= now)) {
            spare = cell;
            spare_key = found;
        }
        if (found == 0) {
            break;
        }
    }
    if (spare == NULL) {
        return NULL;
    }
    if (__atomic_compare_exchange_n(&spare->key, &spare_key, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return spare;
    }
    return spare_key == key ? spare : fastrpc_cell_of(cells, count, key, now);
}

/* Take one request from a cell: return 0, or the nanoseconds until one is allowed.

   One is allowed each `interval`, and as many at once as fit into `tolerance`. */
static inline int64_t fastrpc_cell_take(fastrpc_cell *cell, int64_t now, int64_t interval, int64_t tolerance) {
    int64_t arrival = __atomic_load_n(&cell->arrival, __ATOMIC_ACQUIRE);
    for (;;) {
        int64_t from = arrival > now ? arrival : now;
        if (from - now > tolerance) {
            return from - now - tolerance;
        }
        if (__atomic_compare_exchange_n(
                &cell->arrival, &arrival, from + interval, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return 0;
        }
    }
}

/* Give back what was taken for a request that was not made after all. */
static inline void fastrpc_cell_give_back(fastrpc_cell *cell, int64_t interval) {
    __atomic_fetch_sub(&cell->arrival, interval, __ATOMIC_ACQ_REL);
}

#endif
