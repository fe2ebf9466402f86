/* The parts of a response to tools/call with one text block, as positions in its line. No functions;
 * answer_parser.h fills it, the client's stream uses it. */

#ifndef FASTRPC_ANSWER_H
#define FASTRPC_ANSWER_H

#include "call.h"

struct fastrpc_answer {
    int64_t id;
    struct fastrpc_argument text;
    const char *tail; /* from the text's closing quote to the end of the line */
    Py_ssize_t tail_size;
};

/* The bytes of the result of any answer to a tools/call, in the line; tool_result.h finds it. */
struct fastrpc_tool_result {
    int64_t id;
    const char *text;
    Py_ssize_t size;
    int is_error;
};

#endif
