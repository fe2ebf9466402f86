/* What is asked of a server, and what a right answer to it is. */
#ifndef CLIENT_REQUESTS_H
#define CLIENT_REQUESTS_H

#include "connection.h"

enum request { ECHO, LIST, PAYLOAD, SHELL, SLEEP, STRUCTURE, TEXTS, FAILING, MISFIT, UNKNOWN, PING, RESOURCE, PROMPT };

/* What the workload asks for most. */
enum request main_request(void);

/* Append the line of request `id`. The same id makes the same line. */
void append_request(struct buffer *buffer, enum request request, int64_t id);

/* About how many bytes such a line has. */
size_t request_size(enum request request);

/* Void the run unless `result` is the right one for request `id`. */
void check_result(yyjson_val *result, enum request request, int64_t id);

/* Void the run unless the answer, which may have to be an error, is the right one for request `id`. */
void check_answer_to(yyjson_doc *doc, enum request request, int64_t id);

#endif
