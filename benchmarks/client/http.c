/*
 * HTTP/1.1 as far as a client of MCP needs it: 2026-07-28, stateless, or a session of 2025-11-25 for each
 * connection; answers in JSON, keep-alive.
 *
 * Every answer must have status 200, a JSON body and nothing behind it, and must come on the connection that
 * asked; what is in the body is checked as over pipes, by load.c. The token goes with every request: who asks
 * for none ignores it. An Origin is not sent: only browsers do.
 */
#define _GNU_SOURCE

#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/epoll.h>
#endif

#include "histogram.h"
#include "load.h"
#include "report.h"
#include "requests.h"

enum { HEAD_ROOM = 1024, MOST_EVENTS = 256, SESSION_ROOM = 256 };
enum { FIRST_PORT = 28000, PORTS = 4000 }; /* below those that systems give out by themselves */

struct connection {
    int descriptor;
    size_t number; /* of the request in flight within the pass */
    bool waits;    /* for an answer */
    struct buffer input;
    char session[SESSION_ROOM]; /* its id; empty: none */
};

static struct connection *connections;
static int poller = -1;
static int port;
static size_t session_at; /* where a request has its session's id, from its beginning */

/* ------------------------------------------------------------------ requests */

static void append_head(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append_head(struct buffer *buffer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    reserve(buffer, HEAD_ROOM);
    buffer->length += (size_t)vsnprintf(buffer->data + buffer->length, HEAD_ROOM, format, arguments);
    va_end(arguments);
}

/* A POST with a body, in a session where there is one. `call`: of echo. */
static void append_post(struct buffer *buffer, const char *body, size_t length, const char *session, bool call) {
    size_t begin = buffer->length;
    append_head(buffer,
                "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: load-client/1.0\r\n"
                "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
                "Authorization: Bearer %s\r\n",
                port, options.token ? options.token : "none");
    if (*session) {
        append_head(buffer, "Mcp-Session-Id: ");
        session_at = buffer->length - begin;
        append_head(buffer, "%s\r\n", session);
    }
    append_head(buffer, "MCP-Protocol-Version: %s\r\n", options.modern ? "2026-07-28" : "2025-11-25");
    if (options.modern && call) append_head(buffer, "Mcp-Method: tools/call\r\nMcp-Name: echo\r\n");
    append_head(buffer, "Content-Length: %zu\r\n\r\n", length);
    reserve(buffer, length);
    memcpy(buffer->data + buffer->length, body, length);
    buffer->length += length;
}

void append_http_request(struct buffer *buffer, int64_t id) {
    static struct buffer body;
    body.length = 0;
    append_request(&body, main_request(), id);
    size_t length = body.length - 1; /* without its newline */
    append_post(buffer, body.data, length, connections[0].session, true);
}

/* ------------------------------------------------------------------- answers */

/* The value of a header, up to its line's end; NULL where there is none. `name` has its colon. */
static const char *header(const char *head, const char *end, const char *name) {
    size_t length = strlen(name);
    const char *line = memmem(head, (size_t)(end - head), "\r\n", 2);
    while (line && line < end) {
        line += 2;
        if ((size_t)(end - line) > length && strncasecmp(line, name, length) == 0) {
            const char *value = line + length;
            while (*value == ' ' || *value == '\t') value++;
            return value;
        }
        line = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
    }
    return NULL;
}

static void append_bytes(struct buffer *buffer, const char *bytes, size_t length) {
    reserve(buffer, length);
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
}

/* Read chunks from `at` on, into `body`. Returns how many bytes of `input` they take; 0: more must come. */
static size_t read_chunks(const struct buffer *input, size_t at, struct buffer *body) {
    for (;;) {
        const char *line = input->data + at;
        const char *end = memmem(line, input->length - at, "\r\n", 2);
        if (!end) return 0;
        char *behind;
        unsigned long size = strtoul(line, &behind, 16);
        if (behind == line || (*behind != '\r' && *behind != ';')) void_run("HTTP: a chunk without its size: %.100s", line);
        at += (size_t)(end - line) + 2;
        if (size > input->length || input->length - at < size + 2) return 0;
        if (memcmp(input->data + at + size, "\r\n", 2) != 0) void_run("HTTP: a chunk that is longer than it says");
        if (size == 0) return at + 2;
        append_bytes(body, input->data + at, size);
        at += size + 2;
    }
}

/* Read one answer out of `input`, its body into `body`. Returns how many bytes it takes; 0: more must come.
 * `session`, if it is given, gets the id of the session that the answer begins. */
static size_t read_http(const struct buffer *input, struct buffer *body, const char *type, char *session) {
    const char *head = input->data;
    const char *end = input->length ? memmem(head, input->length, "\r\n\r\n", 4) : NULL;
    if (!end) return 0;
    size_t begin = (size_t)(end - head) + 4;
    bool accepted = type == NULL && memcmp(head, "HTTP/1.1 202", 12) == 0;
    if (!accepted && memcmp(head, "HTTP/1.1 200", 12) != 0) {
        void_run("HTTP: expected status 200, got %.*s", (int)(input->length < 300 ? input->length : 300), head);
    }
    const char *given_type = header(head, end, "content-type:");
    if (type && (!given_type || strncasecmp(given_type, type, strlen(type)) != 0)) {
        void_run("HTTP: expected content-type %s, got %.60s", type, given_type ? given_type : "none");
    }
    const char *id = session ? header(head, end, "mcp-session-id:") : NULL;
    if (id) snprintf(session, SESSION_ROOM, "%.*s", (int)strcspn(id, "\r"), id);
    const char *connection = header(head, end, "connection:");
    if (connection && strncasecmp(connection, "close", 5) == 0) void_run("HTTP: the server closes the connection");
    body->length = 0;
    const char *encoding = header(head, end, "transfer-encoding:");
    if (encoding && strncasecmp(encoding, "chunked", 7) == 0) return read_chunks(input, begin, body);
    const char *text = header(head, end, "content-length:");
    if (!text) void_run("HTTP: an answer without content-length");
    size_t length = strtoul(text, NULL, 10);
    if (input->length - begin < length) return 0;
    append_bytes(body, input->data + begin, length);
    return begin + length;
}

/* Read what has come; true when the answer is whole. Then it is in `body`, and `input` is empty. */
static bool receive(struct connection *connection, struct buffer *body, const char *type) {
    reserve(&connection->input, READ_ROOM);
    struct buffer *input = &connection->input;
    ssize_t count = read(connection->descriptor, input->data + input->length, READ_ROOM - 1);
    if (count < 0 && errno == EINTR) return false;
    if (count < 0) void_run("HTTP: read: %s", strerror(errno));
    if (count == 0) void_run("HTTP: the server closed the connection before it answered");
    input->length += (size_t)count;
    input->data[input->length] = '\0'; /* for what looks at text */
    if (!connection->waits) void_run("HTTP: bytes that nobody asked for: %.100s", input->data);
    size_t taken = read_http(input, body, type, connection->session);
    if (taken == 0) return false;
    if (taken < input->length) void_run("HTTP: more came than was asked for: %.100s", input->data + taken);
    input->length = 0;
    connection->waits = false;
    return true;
}

static void send_bytes(struct connection *connection, const char *bytes, size_t length) {
    size_t sent = 0;
    while (sent < length) {
        ssize_t count = write(connection->descriptor, bytes + sent, length - sent);
        if (count >= 0) sent += (size_t)count;
        else if (errno != EINTR) void_run("HTTP: the server takes no more requests: %s", strerror(errno));
        check_time("request, bytes sent", sent, length);
    }
    connection->waits = true;
}

/* ---------------------------------------------------------------- one server */

static struct sockaddr_in address(void) {
    struct sockaddr_in found = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    found.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return found;
}

/* A port that nobody uses at the moment; and not one of those that the system may give to somebody else before the
 * server has it. */
static void choose_port(void) {
    unsigned at = (unsigned)getpid() * 7919u + (unsigned)(now_ns() / 1000);
    for (unsigned tried = 0; tried < PORTS; tried++) {
        int descriptor = socket(AF_INET, SOCK_STREAM, 0);
        if (descriptor < 0) break;
        port = FIRST_PORT + (int)((at + tried) % PORTS);
        struct sockaddr_in here = address();
        bool is_free = bind(descriptor, (struct sockaddr *)&here, sizeof here) == 0;
        close(descriptor);
        if (is_free) return;
    }
    void_run("no port: %s", strerror(errno));
}

/* Start the server with the port in its command. Returns the moment just before. */
static int64_t spawn_http_server(void) {
    static const char PLACE[] = "{port}";
    char **template = options.command;
    size_t words = 0;
    while (template[words]) words++;
    char **command = grow(NULL, (words + 1) * sizeof *command);
    choose_port();
    for (size_t i = 0; i <= words; i++) {
        char *found = template[i] ? strstr(template[i], PLACE) : NULL;
        command[i] = template[i];
        if (!found) continue;
        size_t room = strlen(template[i]) + 16;
        command[i] = grow(NULL, room);
        snprintf(command[i], room, "%.*s%d%s", (int)(found - template[i]), template[i], port, found + strlen(PLACE));
    }
    options.command = command;
    int64_t moment = spawn_server();
    options.command = template;
    for (size_t i = 0; i < words; i++) {
        if (command[i] != template[i]) free(command[i]);
    }
    free(command);
    return moment;
}

/* A connection to the server, which may not listen yet. */
static int connect_when_ready(void) {
    static const struct timespec PAUSE = {.tv_nsec = 200000};
    struct sockaddr_in there = address();
    for (;;) {
        int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
        if (descriptor < 0) void_run("socket: %s", strerror(errno));
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (connect(descriptor, (struct sockaddr *)&there, sizeof there) == 0) return descriptor;
        close(descriptor);
        if (waitpid(server.pid, NULL, WNOHANG) == server.pid) {
            server.pid = 0;
            void_run("the server ended before it took a connection");
        }
        check_time("connections", 0, options.connections);
        nanosleep(&PAUSE, NULL);
    }
}

static struct connection *open_connections(size_t count) {
    connections = grow(NULL, count * sizeof *connections);
    for (size_t i = 0; i < count; i++) connections[i] = (struct connection){.descriptor = connect_when_ready()};
    return connections;
}

/* Ask by a connection and wait for the answer. */
static void ask(struct connection *connection, const char *message, const char *type) {
    static struct buffer request, body;
    request.length = 0;
    append_post(&request, message, strlen(message), connection->session, false);
    send_bytes(connection, request.data, request.length);
    while (!receive(connection, &body, type)) check_time("a session", 0, 1);
}

/* Have each connection begin a session. Their ids must be of one length: they are put into prepared requests. */
static void open_sessions(size_t count) {
    for (size_t i = 0; i < count; i++) {
        ask(&connections[i],
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","
            "\"capabilities\":{},\"clientInfo\":{\"name\":\"load-client\",\"version\":\"1.0\"}}}",
            "application/json");
        size_t length = strlen(connections[i].session);
        if (length == 0 || length != strlen(connections[0].session)) {
            void_run("HTTP: expected a session's id as long as the others', got '%s'", connections[i].session);
        }
        ask(&connections[i], "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", NULL);
    }
}

static void close_connections(size_t count) {
    for (size_t i = 0; i < count; i++) {
        close(connections[i].descriptor);
        free(connections[i].input.data);
    }
    free(connections);
}

static int stop_server(struct rusage *usage) {
    kill(server.pid, SIGTERM);
    int code = end_server(usage);
    return code == -SIGTERM ? 0 : code;
}

int end_http_server(struct rusage *usage) {
    close_connections(options.connections);
    close(poller);
    return stop_server(usage);
}

/* ----------------------------------------------------------------- the load */

#ifdef __linux__

void begin_http_session(void) {
    set_alarm(options.timeout);
    options.modern = !options.session;
    spawn_http_server();
    open_connections(options.connections);
    if (options.session) open_sessions(options.connections);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) void_run("epoll: %s", strerror(errno));
    for (size_t i = 0; i < options.connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[i]};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, connections[i].descriptor, &event) != 0) void_run("epoll: %s", strerror(errno));
    }
}

/* The next request goes out by this connection, if there is one left. */
static void send_next(struct connection *connection, size_t *begun, int64_t moment) {
    if (*begun == pass.calls) return;
    size_t number = (*begun)++, begin = number ? pass.ends[number - 1] : 0;
    connection->number = number;
    if (options.session) memcpy(pass.requests.data + begin + session_at, connection->session, strlen(connection->session));
    pass.sent[number] = moment;
    send_bytes(connection, pass.requests.data + begin, pass.ends[number] - begin);
}

/* Keep an answer as one line, as if it had come through a pipe. */
static void keep_answer(struct buffer *body, size_t number, size_t answered, int64_t moment) {
    for (char *at = body->data; (at = memchr(at, '\n', body->length - (size_t)(at - body->data))); at++) *at = ' ';
    append_bytes(&pass.answers, body->data, body->length);
    append_bytes(&pass.answers, "\n", 1);
    pass.asked[answered] = number;
    record_arrival(moment);
}

void run_http_pass(void) {
    static struct buffer body;
    struct epoll_event events[MOST_EVENTS];
    size_t answered = 0, begun = 0;
    int64_t now = now_ns();
    for (size_t i = 0; i < options.connections; i++) send_next(&connections[i], &begun, now);
    while (answered < pass.calls) {
        int count = epoll_wait(poller, events, MOST_EVENTS, -1);
        check_time("answers", answered, pass.calls);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!receive(connection, &body, "application/json")) continue;
            now = now_ns();
            keep_answer(&body, connection->number, answered++, now);
            send_next(connection, &begun, now);
        }
    }
}

#else

void begin_http_session(void) { void_run("HTTP is measured on Linux only: it needs epoll"); }

void run_http_pass(void) {}

#endif

/* ------------------------------------------------------------------- starts */

void run_http_starts(void) {
    static struct buffer body;
    struct rusage usage;
    long peak_kb = 0;
    int exit_code = 0;
    for (size_t i = 0; i < options.starts; i++) {
        char request[HEAD_ROOM];
        set_alarm(options.timeout);
        int64_t begin = spawn_http_server();
        struct connection *connection = open_connections(1);
        int length = snprintf(request, sizeof request, "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
        send_bytes(connection, request, (size_t)length);
        while (!receive(connection, &body, NULL)) check_time("/readyz", 0, 1);
        histogram_record(now_ns() - begin);
        if (peak_memory_kb() > peak_kb) peak_kb = peak_memory_kb();
        close_connections(1);
        int code = stop_server(&usage);
        if (code) exit_code = code;
    }
    put_text("unit", "ms");
    put_integer("starts", (int64_t)options.starts);
    put_percentiles(1e-3);
    put_usage(&usage, peak_kb, exit_code);
}
