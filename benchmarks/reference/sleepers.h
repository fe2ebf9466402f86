/* Answers that wait for their time: the tool sleep, without a thread. */
#ifndef REFERENCE_SLEEPERS_H
#define REFERENCE_SLEEPERS_H

#include <stdbool.h>

#include "buffer.h"

enum { SLEEP_MAX_MS = 3600 * 1000 };

/* Take the answer that begins there out of the output, for so many milliseconds. */
void put_to_sleep(int64_t ms, struct buffer *output, size_t begin);

bool anyone_sleeps(void);

/* Wait until the next of them is due, or until the descriptor (-1: none) can be read: then true. */
bool wait_or_wake(int descriptor);

/* Append all answers that are due. */
void wake_sleepers(struct buffer *output);

#endif
