/* The same calls over HTTP: connections that stay open, each with one request at a time. */
#ifndef CLIENT_HTTP_H
#define CLIENT_HTTP_H

#include "connection.h"

/* Append request `id` with its head: POST /mcp, stateless, on the wire of 2026-07-28, or in a session of
 * 2025-11-25, whose id is put in when the request is sent. */
void append_http_request(struct buffer *buffer, int64_t id);

/* Start the server on a free port, which stands for `{port}` in its command, and open all connections, each
 * with a session where the options say so. */
void begin_http_session(void);

/* The measured part: as many requests in flight as there are connections, until all are answered. */
void run_http_pass(void);

/* Close the connections and end the server with SIGTERM. Returns its exit code; 0 where the signal ended it. */
int end_http_server(struct rusage *usage);

/* Spawn to the answer of GET /readyz, many times. */
void run_http_starts(void);

#endif
