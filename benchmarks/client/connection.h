/* One server process and the pipes to it: start, handshake, end; and what every file here needs. */
#ifndef CLIENT_CONNECTION_H
#define CLIENT_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "yyjson.h"

enum workload {
    ECHO_CALLS, TOOL_LISTS, PAYLOAD_CALLS, SHELL_CALLS, SLEEPERS, MEMORY, STARTS, BARE_STARTS, HTTP_CALLS, HTTP_STARTS,
    STRUCTURE_CALLS, TEXTS_CALLS, FAILING_CALLS, MISFIT_CALLS, UNKNOWN_CALLS, PINGS, RESOURCE_READS, PROMPT_GETS,
};

enum answer { THE_TEXT, TWO_TEXTS, A_FAILURE };

struct options {
    enum workload workload;
    const char *workload_name;
    size_t window;
    size_t size;  /* bytes of an echoed text; 0: a few words */
    size_t piece; /* the most bytes that the server can read at once; 0: no bound */
    bool ascii;   /* texts of that size hold nothing beyond ASCII */
    bool modern;  /* the wire of 2026-07-28: no handshake, an envelope in every request */
    bool session;              /* of HTTP_CALLS: each connection has a session of 2025-11-25 */
    const char *tool;          /* the name of the tool that is called where it is not echo's */
    const char *shell_command; /* of SHELL_CALLS */
    size_t printed;            /* how many bytes x that command prints */
    size_t sleepers;           /* calls that sleep beside the probe, or, of MEMORY, before the calls */
    size_t sleep_ms;
    size_t calls; /* of MEMORY */
    size_t tools; /* how many the list must hold; 0: any number */
    size_t starts;
    size_t connections; /* of HTTP_CALLS */
    enum answer answer; /* of HTTP_CALLS: what a call of echo gets */
    const char *token;  /* that HTTP requests bear */
    double seconds, warm_up;
    unsigned timeout; /* seconds that one pass may take */
    int client_cpu, server_cpu; /* -1: not pinned */
    char **command;
};

extern struct options options;

/* The run is worth nothing: print {"void": reason}, leave no server behind, exit with code 1. */
__attribute__((noreturn, format(printf, 1, 2))) void void_run(const char *format, ...);

struct buffer {
    char *data;
    size_t length, capacity;
};

enum { READ_ROOM = 256 * 1024 };

void *grow(void *block, size_t size);
void reserve(struct buffer *buffer, size_t more);
int64_t now_ns(void);

struct server {
    pid_t pid; /* 0: none runs */
    int to, from;
    struct buffer line; /* bytes of the handshake that have been read but not used */
};

extern struct server server;

/* Catch the signals that the functions below live with. Call it first. */
void prepare_signals(void);

/* From now on a blocked read or write returns EINTR when the time is up, and again every half second. */
void set_alarm(unsigned seconds);
void check_time(const char *doing, size_t done, size_t wanted);

/* Start the server with two pipes, pinned as the options say. Returns the moment just before. */
int64_t spawn_server(void);

/* initialize and its answer. */
void shake_hands(void);
void acknowledge(void);

/* The server takes no more at the moment: wait for either pipe. True when there is something to read. */
bool wait_for_either(void);

/* For messages too small to fill a pipe. */
void send_line(const char *line);

/* Read one line and return it as JSON, which the caller frees. */
yyjson_doc *read_answer(const char *to_what);

/* The result of an answer, which must be a right one to request `id`. */
yyjson_val *result_of(yyjson_doc *doc, int64_t id, const char *to_what);

/* The message of an answer that must be error `code` to request `id`. */
yyjson_val *error_of(yyjson_doc *doc, int64_t id, int64_t code, const char *to_what);

/* What the server holds in memory and the most that it has held, in KiB; 0 where the system does not tell. */
long memory_kb(void);
long peak_memory_kb(void);

/* Close the server's input and wait for its end. Returns its exit code, or minus the signal's number. */
int end_server(struct rusage *usage);

#endif
