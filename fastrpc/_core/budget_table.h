/* Budgets: how much of each is used in the current period, in memory that several processes share and that outlives
   them.

   A cell is one budget of one caller. One word of it holds the number of its period and the amount that is used or
   reserved in it, so that a reservation, with the change to another period, is one compare-and-swap: processes that
   reserve at the same moment never exceed the limit. What a process has reserved and may give back is also
   stored in a word of that process for each cell; a process that finds that one gone subtracts it
   (fastrpc_budget_recover). Words are written in an order by which a process that is killed in between leaves
   too much counted, never too little.

   A process may claim a cell for another key once the period of the cell has ended. It must hold a lock, so
   that one process claims at a time. During a claim the word of the cell is FASTRPC_BUDGET_CLOSED. Numbers of periods only
   grow, so a compare-and-swap never mistakes a new word for one that it has read before. */
#ifndef FASTRPC_BUDGET_TABLE_H
#define FASTRPC_BUDGET_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FASTRPC_BUDGET_TEXT = 232, FASTRPC_BUDGET_SHIFT = 48 };
#define FASTRPC_BUDGET_AMOUNT ((UINT64_C(1) << FASTRPC_BUDGET_SHIFT) - 1)
#define FASTRPC_BUDGET_CLOSED UINT64_MAX

typedef struct {
    uint64_t key;    /* 0: never used */
    uint64_t held;   /* the period's number, and the amount in the lower 48 bits */
    uint32_t period; /* which kind of period: an index into the numbers of the current ones */
    uint32_t size;   /* bytes of the text */
    char text[FASTRPC_BUDGET_TEXT];
} fastrpc_budget_cell;

static inline uint64_t fastrpc_budget_load(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

static inline void fastrpc_budget_store(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline int fastrpc_budget_swap(uint64_t *word, uint64_t *found, uint64_t next) {
    return __atomic_compare_exchange_n(word, found, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Change the amount of a word that is about a period, by what may be negative; one about another is left alone. */
static inline void fastrpc_budget_change(uint64_t *word, const uint64_t *owner, uint64_t key, uint64_t number,
                                         int64_t change) {
    uint64_t found = fastrpc_budget_load(word);
    for (;;) {
        int64_t amount = (int64_t)(found & FASTRPC_BUDGET_AMOUNT) + change;
        if (found >> FASTRPC_BUDGET_SHIFT != number || fastrpc_budget_load(owner) != key) { return; }
        if (amount < 0) { amount = 0; }
        if (amount > (int64_t)FASTRPC_BUDGET_AMOUNT) { amount = (int64_t)FASTRPC_BUDGET_AMOUNT; }
        if (fastrpc_budget_swap(word, &found, (number << FASTRPC_BUDGET_SHIFT) | (uint64_t)amount)) { return; }
    }
}

/* Count an amount in the period `number`, or in the later one that the cell is in if the clock was set back. Return
   what is counted then; -1 if that would exceed the limit; -2 if the cell is another key's by now; -3 if it would
   exceed what this host has been granted. `reserved`: the word of this process, NULL for an amount that stays counted
   if the process is killed. `granted`: the word of what the host may count, NULL if that is the limit. */
static inline int64_t fastrpc_budget_take(fastrpc_budget_cell *cell, uint64_t *reserved, const uint64_t *granted,
                                          uint64_t key, uint64_t number, uint64_t amount, uint64_t limit) {
    uint64_t found = fastrpc_budget_load(&cell->held);
    for (;;) {
        uint64_t current = found >> FASTRPC_BUDGET_SHIFT >= number ? found : number << FASTRPC_BUDGET_SHIFT;
        uint64_t total = (current & FASTRPC_BUDGET_AMOUNT) + amount;
        if (found == FASTRPC_BUDGET_CLOSED || fastrpc_budget_load(&cell->key) != key) { return -2; }
        if (total > limit) { return -1; }
        if (granted != NULL) {
            uint64_t may = fastrpc_budget_load(granted);
            if (may >> FASTRPC_BUDGET_SHIFT != current >> FASTRPC_BUDGET_SHIFT || total > (may & FASTRPC_BUDGET_AMOUNT)) {
                return -3;
            }
        }
        if (fastrpc_budget_swap(&cell->held, &found, current + amount)) {
            if (reserved != NULL) {
                uint64_t mine = fastrpc_budget_load(reserved);
                uint64_t next;
                number = current >> FASTRPC_BUDGET_SHIFT;
                do {
                    next = mine >> FASTRPC_BUDGET_SHIFT == number ? mine : number << FASTRPC_BUDGET_SHIFT;
                } while (!fastrpc_budget_swap(reserved, &mine, next + amount));
            }
            return (int64_t)total;
        }
    }
}

/* Replace an amount that was taken in a period by the one that was used. */
static inline void fastrpc_budget_settle(fastrpc_budget_cell *cell, uint64_t *reserved, uint64_t key, uint64_t number,
                                         int64_t taken, int64_t used) {
    if (reserved != NULL) { fastrpc_budget_change(reserved, &cell->key, key, number, -taken); }
    fastrpc_budget_change(&cell->held, &cell->key, key, number, used - taken);
}

/* Let the host count so much more in a period. Less than 0 takes back what is not counted, at most so much. Return by
   how much the word has changed. */
static inline int64_t fastrpc_budget_grant(uint64_t *granted, const fastrpc_budget_cell *cell, uint64_t number,
                                           int64_t change) {
    uint64_t found = fastrpc_budget_load(granted);
    for (;;) {
        uint64_t held = fastrpc_budget_load(&cell->held);
        int64_t before = found >> FASTRPC_BUDGET_SHIFT == number ? (int64_t)(found & FASTRPC_BUDGET_AMOUNT) : 0;
        int64_t by = change;
        if (found >> FASTRPC_BUDGET_SHIFT > number) { return 0; }
        if (by < 0) {
            int64_t counted = held >> FASTRPC_BUDGET_SHIFT == number ? (int64_t)(held & FASTRPC_BUDGET_AMOUNT) : 0;
            int64_t left = before > counted ? before - counted : 0;
            if (-by > left) { by = -left; }
        }
        if (by == 0) { return 0; }
        if (before + by > (int64_t)FASTRPC_BUDGET_AMOUNT) { by = (int64_t)FASTRPC_BUDGET_AMOUNT - before; }
        if (fastrpc_budget_swap(granted, &found, (number << FASTRPC_BUDGET_SHIFT) | (uint64_t)(before + by))) {
            return by;
        }
    }
}

/* Give back what a process had reserved that is gone. Return in how many cells. */
static inline size_t fastrpc_budget_recover(fastrpc_budget_cell *cells, uint64_t *reserved, size_t count) {
    size_t found = 0;
    for (size_t at = 0; at < count; at++) {
        uint64_t word = fastrpc_budget_load(&reserved[at]) ? __atomic_exchange_n(&reserved[at], 0, __ATOMIC_ACQ_REL) : 0;
        if (word & FASTRPC_BUDGET_AMOUNT) {
            fastrpc_budget_change(&cells[at].held, &cells[at].key, fastrpc_budget_load(&cells[at].key),
                                  word >> FASTRPC_BUDGET_SHIFT, -(int64_t)(word & FASTRPC_BUDGET_AMOUNT));
            found++;
        }
    }
    return found;
}

/* Return the key's cell, or claim one that is free; -1 if all are in use. `numbers` are those of the current periods,
   `reserved` the words of all processes, a row of `count` for each. One process at a time. */
static inline int64_t fastrpc_budget_claim(fastrpc_budget_cell *cells, uint64_t *reserved, size_t count, size_t rows,
                                           uint64_t key, uint32_t period, const uint64_t *numbers) {
    for (;;) {
        fastrpc_budget_cell *spare = NULL;
        uint64_t spare_held = 0;
        for (size_t probe = 0; probe < count; probe++) {
            fastrpc_budget_cell *cell = &cells[(key + probe) & (count - 1)];
            uint64_t owner = fastrpc_budget_load(&cell->key);
            uint64_t held = fastrpc_budget_load(&cell->held);
            int left = held == FASTRPC_BUDGET_CLOSED; /* by a process that was killed while it claimed the cell */
            if (owner == key && !left) { return cell - cells; }
            if (spare == NULL || owner == key) {
                if (owner == 0 || left || held >> FASTRPC_BUDGET_SHIFT < numbers[cell->period & 1]) {
                    spare = cell;
                    spare_held = held;
                }
            }
            if (owner == 0 || owner == key) { break; }
        }
        if (spare == NULL) { return -1; }
        if (fastrpc_budget_swap(&spare->held, &spare_held, FASTRPC_BUDGET_CLOSED)) {
            for (size_t row = 0; row < rows; row++) {
                fastrpc_budget_store(&reserved[row * count + (size_t)(spare - cells)], 0);
            }
            spare->period = period;
            spare->size = 0;
            fastrpc_budget_store(&spare->key, key);
            fastrpc_budget_store(&spare->held, numbers[period & 1] << FASTRPC_BUDGET_SHIFT);
            return spare - cells;
        }
    }
}

#endif
