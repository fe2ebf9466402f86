/* Pipes that wake a reader: a signal handler, or another thread, writes a byte. */
#pragma once

#include <fcntl.h>
#include <unistd.h>

/* Return -1 if it cannot be made. Writing never blocks; reading does if `waits`. */
static inline int fastrpc_make_pipe(int ends[2], int waits) {
    if (pipe(ends) < 0) { return -1; }
    for (int end = 0; end < 2; ++end) {
        fcntl(ends[end], F_SETFD, FD_CLOEXEC);
        if (end == 1 || !waits) { fcntl(ends[end], F_SETFL, O_NONBLOCK); }
    }
    return 0;
}

static inline void fastrpc_close_pipe(int ends[2]) {
    for (int end = 0; end < 2; ++end) {
        if (ends[end] >= 0) { close(ends[end]); }
        ends[end] = -1;
    }
}
