/* Runs one shell command for the bash tool. */
#ifndef REFERENCE_SHELL_H
#define REFERENCE_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"

enum { SHELL_TIMEOUT_MS = 30000, SHELL_TIMEOUT_MAX_MS = 600000 };

/*
 * Run `bash -c command` and append to `text` what a model needs to read: the output (of a long one the
 * head and the tail) and how it ended, unless that was exit code 0, for which it returns true.
 */
bool run_shell(const char *command, int64_t timeout_ms, struct buffer *text);

#endif
