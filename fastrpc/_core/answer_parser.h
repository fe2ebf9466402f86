/* The likely answer to a tools/call: a result of one text block, in one walk.
 *
 * Servers write the same bytes around each text. What stands before it is fixed here; what stands behind it, the
 * tail, is compared with tails of earlier lines that simdjson has read whole (`client_stream.pyx` learns
 * them). A line with a fixed head, an integer for its id, a valid string and a known tail is valid JSON with
 * the meaning of the earlier line, but for the id and the text. It costs about 40 ns; every other line is handed
 * over untouched.
 *
 * A line has at least 64 readable bytes behind it, the first of them a control character; see fast_parser.h. */

#ifndef FASTRPC_ANSWER_PARSER_H
#define FASTRPC_ANSWER_PARSER_H

#include "answer.h"
#include "fast_parser.h"

#define FASTRPC_ANSWER_HEAD "{\"jsonrpc\":\"2.0\",\"id\":"
#define FASTRPC_ANSWER_TEXT ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\""

/* Read a line up to its tail; 0 for a line that begins otherwise. */
static inline int fastrpc_read_answer(const char *line, Py_ssize_t size, struct fastrpc_answer *answer) {
    const Py_ssize_t head = sizeof FASTRPC_ANSWER_HEAD - 1, middle = sizeof FASTRPC_ANSWER_TEXT - 1;
    const char *at = line + head, *end = line + size;
    if (size < head || memcmp(line, FASTRPC_ANSWER_HEAD, head) != 0) { return 0; }
    if (!(at = fastrpc_integer(at, &answer->id))) { return 0; }
    if (end - at < middle || memcmp(at, FASTRPC_ANSWER_TEXT, middle) != 0) { return 0; }
    answer->text.text = at + middle;
    at = fastrpc_text(answer->text.text, &answer->text.beyond_ascii, &answer->text.escaped);
    if (!at || at >= end) { return 0; }
    answer->text.size = at - answer->text.text;
    answer->tail = at;
    answer->tail_size = end - at;
    return 1;
}

#endif
