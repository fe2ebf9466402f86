/*
 * The sleeping answers, in the order in which they are due: a doubly linked list, entered from its end.
 * Calls that sleep equally long, the usual thing, go in and out in constant time.
 */
#define _GNU_SOURCE

#include "sleepers.h"

#include <poll.h>
#include <time.h>

struct sleeper {
    struct sleeper *before, *behind;
    int64_t due_ns;
    size_t length;
    char answer[];
};

static struct sleeper *first, *last;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void put_to_sleep(int64_t ms, struct buffer *output, size_t begin) {
    size_t length = output->length - begin;
    struct sleeper *sleeper = grow(NULL, sizeof *sleeper + length);
    sleeper->due_ns = now_ns() + ms * 1000000;
    sleeper->length = length;
    memcpy(sleeper->answer, output->data + begin, length);
    output->length = begin;
    struct sleeper *before = last;
    while (before && before->due_ns > sleeper->due_ns) before = before->before;
    sleeper->before = before;
    sleeper->behind = before ? before->behind : first;
    *(before ? &before->behind : &first) = sleeper;
    *(sleeper->behind ? &sleeper->behind->before : &last) = sleeper;
}

bool anyone_sleeps(void) { return first != NULL; }

bool wait_or_wake(int descriptor) {
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN, .revents = 0};
    int64_t left = first->due_ns - now_ns();
    if (left < 0) left = 0;
    struct timespec timeout = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
    return ppoll(&wanted, 1, &timeout, NULL) > 0;
}

void wake_sleepers(struct buffer *output) {
    if (!first) return;
    int64_t now = now_ns();
    while (first && first->due_ns <= now) {
        struct sleeper *sleeper = first;
        append(output, sleeper->answer, sleeper->length);
        first = sleeper->behind;
        if (first) first->before = NULL;
        else last = NULL;
        free(sleeper);
    }
}
