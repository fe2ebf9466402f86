/*
 * The server's process: spawned with posix_spawn, pinned, given its handshake, ended and waited for.
 *
 * Our end of its input is non-blocking, since a full pipe must not hold us while the server waits for us
 * to read; everything else blocks, with an alarm that voids the run when the time is up.
 */
#define _GNU_SOURCE

#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct server server = {.to = -1, .from = -1};

void void_run(const char *format, ...) {
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (server.pid > 0) {
        kill(server.pid, SIGKILL);
        waitpid(server.pid, NULL, 0);
    }
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "workload", options.workload_name);
    yyjson_mut_obj_add_str(doc, root, "void", reason);
    char *json = yyjson_mut_write(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
    puts(json ? json : "{\"void\": \"a reason that cannot be written\"}");
    fflush(stdout);
    _exit(1);
}

void *grow(void *block, size_t size) {
    void *grown = realloc(block, size);
    if (!grown) void_run("the client is out of memory");
    return grown;
}

void reserve(struct buffer *buffer, size_t more) {
    if (buffer->capacity - buffer->length >= more) return;
    size_t capacity = buffer->capacity ? buffer->capacity : READ_ROOM;
    while (capacity - buffer->length < more) capacity *= 2;
    buffer->data = grow(buffer->data, capacity);
    buffer->capacity = capacity;
}

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static volatile sig_atomic_t time_is_up = 0;
static unsigned allowed_seconds = 0;

static void on_alarm(int number) {
    (void)number;
    time_is_up = 1;
}

void prepare_signals(void) {
    struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART: it must interrupt a read */
    sigaction(SIGALRM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a server that has left shows as EPIPE */
}

void set_alarm(unsigned seconds) {
    struct itimerval timer = {.it_interval = {0, seconds ? 500000 : 0}, .it_value = {(time_t)seconds, 0}};
    time_is_up = 0;
    allowed_seconds = seconds;
    setitimer(ITIMER_REAL, &timer, NULL);
}

void check_time(const char *doing, size_t done, size_t wanted) {
    if (time_is_up) void_run("%s: %zu of %zu after %u s", doing, done, wanted, allowed_seconds);
}

static void pin(int cpu) {
#ifdef __linux__
    cpu_set_t set;
    if (cpu < 0) return;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) void_run("cannot pin to cpu %d: %s", cpu, strerror(errno));
#else
    (void)cpu;
#endif
}

int64_t spawn_server(void) {
    int request_ends[2], answer_ends[2];
    if (pipe(request_ends) != 0 || pipe(answer_ends) != 0) void_run("pipe: %s", strerror(errno));
    fcntl(request_ends[1], F_SETFD, FD_CLOEXEC);
    fcntl(answer_ends[0], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, request_ends[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answer_ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, request_ends[0]);
    posix_spawn_file_actions_addclose(&actions, answer_ends[1]);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    pin(options.server_cpu); /* inherited */
    int64_t moment = now_ns();
    int error = posix_spawnp(&server.pid, options.command[0], &actions, &attributes, options.command, environ);
    if (error) {
        server.pid = 0;
        void_run("cannot start %s: %s", options.command[0], strerror(error));
    }
    pin(options.client_cpu);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(request_ends[0]);
    close(answer_ends[1]);
    server.to = request_ends[1];
    server.from = answer_ends[0];
    server.line.length = 0;
#ifdef __linux__
    /* A pipe that holds one piece hands over one piece at a time, however much is waiting. */
    if (options.piece && fcntl(server.to, F_SETPIPE_SZ, (int)options.piece) < 0) void_run("pipe size: %s", strerror(errno));
#endif
    /* Our end alone: a full pipe must not hold us while the server waits for us to read. */
    fcntl(server.to, F_SETFL, fcntl(server.to, F_GETFL) | O_NONBLOCK);
    return moment;
}

static void wait_until(int descriptor, short events) {
    struct pollfd wanted = {.fd = descriptor, .events = events, .revents = 0};
    (void)poll(&wanted, 1, -1);
}

bool wait_for_either(void) {
    struct pollfd pipes[2] = {{.fd = server.from, .events = POLLIN}, {.fd = server.to, .events = POLLOUT}};
    (void)poll(pipes, 2, -1);
    return pipes[0].revents != 0;
}

void send_line(const char *line) {
    size_t length = strlen(line), sent = 0;
    while (sent < length) {
        ssize_t count = write(server.to, line + sent, length - sent);
        if (count >= 0) sent += (size_t)count;
        else if (errno == EAGAIN) wait_until(server.to, POLLOUT);
        else if (errno != EINTR) void_run("the server took no handshake: %s", strerror(errno));
        check_time("handshake, bytes sent", sent, length);
    }
}

yyjson_doc *read_answer(const char *to_what) {
    char *newline;
    while (!(newline = server.line.length ? memchr(server.line.data, '\n', server.line.length) : NULL)) {
        reserve(&server.line, READ_ROOM);
        ssize_t count = read(server.from, server.line.data + server.line.length, READ_ROOM);
        if (count == 0) void_run("the server closed its output before it answered %s", to_what);
        if (count > 0) server.line.length += (size_t)count;
        check_time(to_what, 0, 1);
    }
    size_t length = (size_t)(newline - server.line.data) + 1;
    yyjson_doc *doc = yyjson_read(server.line.data, length, 0);
    if (!doc) void_run("not JSON, the answer to %s: %.*s", to_what, (int)(length < 200 ? length : 200), server.line.data);
    server.line.length -= length;
    memmove(server.line.data, newline + 1, server.line.length);
    return doc;
}

static yyjson_val *answer_of(yyjson_doc *doc, int64_t id, const char *to_what) {
    yyjson_val *root = yyjson_doc_get_root(doc);
    if (!yyjson_equals_str(yyjson_obj_get(root, "jsonrpc"), "2.0")) void_run("%s: an answer without jsonrpc 2.0", to_what);
    if (yyjson_get_sint(yyjson_obj_get(root, "id")) != id) void_run("%s: an answer with another id", to_what);
    return root;
}

yyjson_val *result_of(yyjson_doc *doc, int64_t id, const char *to_what) {
    yyjson_val *result = yyjson_obj_get(answer_of(doc, id, to_what), "result");
    if (!yyjson_is_obj(result)) void_run("%s: an answer without a result", to_what);
    return result;
}

yyjson_val *error_of(yyjson_doc *doc, int64_t id, int64_t code, const char *to_what) {
    yyjson_val *root = answer_of(doc, id, to_what), *error = yyjson_obj_get(root, "error");
    yyjson_val *message = yyjson_obj_get(error, "message");
    int64_t got = yyjson_get_sint(yyjson_obj_get(error, "code"));
    if (yyjson_obj_get(root, "result") || !yyjson_is_str(message)) void_run("%s: an answer without an error", to_what);
    if (got != code) void_run("%s: expected error %lld, got %lld", to_what, (long long)code, (long long)got);
    return message;
}

void shake_hands(void) {
    send_line("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","
              "\"capabilities\":{},\"clientInfo\":{\"name\":\"load-client\",\"version\":\"1.0\"}}}\n");
    yyjson_doc *doc = read_answer("initialize");
    if (!yyjson_is_str(yyjson_obj_get(result_of(doc, 1, "initialize"), "protocolVersion"))) void_run("initialize: no version");
    yyjson_doc_free(doc);
}

void acknowledge(void) { send_line("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"); }

/* What else a server prints there is its own matter. */
static bool answers_by_pipe(void) {
    return options.workload != BARE_STARTS && options.workload != HTTP_CALLS && options.workload != HTTP_STARTS;
}

int end_server(struct rusage *usage) {
    char rest[512];
    int status;
    close(server.to);
    for (;;) { /* until every writer is gone */
        ssize_t count = read(server.from, rest, sizeof rest);
        if (count == 0) break;
        if (count > 0 && answers_by_pipe()) void_run("the server sent %zd bytes that nobody asked for", count);
        check_time("ends of output", 0, 1);
    }
    while (wait4(server.pid, &status, 0, usage) < 0 && errno == EINTR) check_time("exits", 0, 1);
    server.pid = 0;
    close(server.from);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static long status_kb(const char *field) {
    char path[64], line[256];
    long found = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)server.pid);
    FILE *status = fopen(path, "r");
    if (!status) return 0;
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, field, strlen(field)) == 0) found = strtol(line + strlen(field), NULL, 10);
    }
    fclose(status);
    return found;
}

long memory_kb(void) { return status_kb("VmRSS:"); }

/* What wait4 reports is not enough on Linux: a process starts with its parent's high-water mark. */
long peak_memory_kb(void) { return status_kb("VmHWM:"); }
