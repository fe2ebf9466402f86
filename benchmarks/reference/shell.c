/*
 * The bash tool's process: posix_spawn (vfork inside), poll and read until the output ends, reap.
 *
 * stdout and stderr come through one pipe, as they were written; memory is bounded while they are read,
 * and what is not UTF-8 becomes U+FFFD. The shell has a session of its own, which is killed when the time
 * is up. A child that leaves that session, or holds the pipe beyond its shell, is not looked after.
 */
#define _GNU_SOURCE

#include "shell.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SHELL_HEAD = 10000, SHELL_TAIL = 20000 }; /* the first third of what is kept, the last two thirds */

extern char **environ;

/* The head and the tail of an output of any length: memory stays bounded while it is read. */
struct capture {
    char head[SHELL_HEAD];
    char tail[SHELL_TAIL]; /* a ring: byte number n of what follows the head lies at n % SHELL_TAIL */
    size_t head_length;
    size_t behind; /* bytes that came behind the head */
};

static struct capture capture;

static void capture_bytes(const char *bytes, size_t length) {
    size_t into_head = SHELL_HEAD - capture.head_length;
    if (into_head > length) into_head = length;
    memcpy(capture.head + capture.head_length, bytes, into_head);
    capture.head_length += into_head;
    bytes += into_head;
    length -= into_head;
    if (length > SHELL_TAIL) { /* all but the last of it would be written over at once */
        capture.behind += length - SHELL_TAIL;
        bytes += length - SHELL_TAIL;
        length = SHELL_TAIL;
    }
    while (length) {
        size_t at = capture.behind % SHELL_TAIL;
        size_t piece = SHELL_TAIL - at < length ? SHELL_TAIL - at : length;
        memcpy(capture.tail + at, bytes, piece);
        capture.behind += piece;
        bytes += piece;
        length -= piece;
    }
}

/* The length of the UTF-8 character that begins here, 0 when none does. */
static size_t character_length(const unsigned char *bytes, size_t left) {
    unsigned char first = bytes[0];
    if (first < 0x80) return 1;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > left) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
    }
    /* overlong forms, surrogates, beyond U+10FFFF */
    if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f)) return 0;
    if ((first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f)) return 0;
    return length;
}

/* Append what a program printed; what is not UTF-8 becomes U+FFFD. */
static void append_lossy(struct buffer *buffer, const char *bytes, size_t length) {
    reserve(buffer, 3 * length);
    while (length) {
        size_t step = character_length((const unsigned char *)bytes, length);
        if (step) append(buffer, bytes, step);
        else APPEND(buffer, "\xef\xbf\xbd");
        bytes += step ? step : 1;
        length -= step ? step : 1;
    }
}

static void append_note(struct buffer *buffer, const char *before, int64_t number, const char *behind) {
    if (buffer->length && buffer->data[buffer->length - 1] != '\n') APPEND(buffer, "\n");
    append(buffer, before, strlen(before));
    append_integer(buffer, number);
    append(buffer, behind, strlen(behind));
}

static void append_captured(struct buffer *buffer) {
    append_lossy(buffer, capture.head, capture.head_length);
    size_t kept = capture.behind < SHELL_TAIL ? capture.behind : SHELL_TAIL;
    if (capture.behind > kept) append_note(buffer, "[... ", (int64_t)(capture.behind - kept), " bytes left out ...]\n");
    size_t first = (capture.behind - kept) % SHELL_TAIL;
    size_t piece = SHELL_TAIL - first < kept ? SHELL_TAIL - first : kept;
    append_lossy(buffer, capture.tail + first, piece);
    append_lossy(buffer, capture.tail, kept - piece);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Start `bash -c command` in a session of its own, output to `*reader`. Returns 0 or an error number. */
static int spawn_shell(const char *command, pid_t *child, int *reader) {
    char *const argv[] = {"bash", "-c", (char *)(uintptr_t)command, NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(child, "/bin/bash", &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    if (error) close(ends[0]);
    *reader = ends[0];
    return error;
}

/* Read until every writer has closed. False when the time is up before. */
static bool drain(int reader, int64_t timeout_ms) {
    static char piece[READ_ROOM];
    int64_t deadline = now_ms() + timeout_ms;
    for (;;) {
        int64_t left = deadline - now_ms();
        struct pollfd wanted = {.fd = reader, .events = POLLIN, .revents = 0};
        int ready = left > 0 ? poll(&wanted, 1, (int)left) : 0;
        if (ready == 0) return false;
        if (ready < 0) continue; /* EINTR */
        ssize_t count = read(reader, piece, sizeof piece);
        if (count == 0) return true;
        if (count > 0) capture_bytes(piece, (size_t)count);
    }
}

bool run_shell(const char *command, int64_t timeout_ms, struct buffer *text) {
    pid_t child;
    int reader, status;
    if (timeout_ms > SHELL_TIMEOUT_MAX_MS) timeout_ms = SHELL_TIMEOUT_MAX_MS;
    int error = spawn_shell(command, &child, &reader);
    if (error) {
        const char *reason = strerror(error);
        append(text, reason, strlen(reason));
        return false;
    }
    capture.head_length = capture.behind = 0;
    bool in_time = drain(reader, timeout_ms);
    if (!in_time) kill(-child, SIGKILL);
    close(reader);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;

    append_captured(text);
    if (!in_time) append_note(text, "[timed out after ", timeout_ms, " ms]");
    else if (WIFSIGNALED(status)) append_note(text, "[killed by signal ", WTERMSIG(status), "]");
    else if (WEXITSTATUS(status)) append_note(text, "[exit code ", WEXITSTATUS(status), "]");
    else if (!text->length) APPEND(text, "(no output)");
    return in_time && status == 0;
}
