/* Reads the most common response to tools/call, a result of one text block, in one pass.
 *
 * A server writes the same bytes around each text. The bytes before it are fixed here; the bytes after it, the
 * tail, are compared with tails of earlier lines that simdjson has parsed (`client_stream.pyx` stores them). A
 * line with this head, an integer id, a valid string and a known tail is valid JSON and means the same as the
 * earlier line, except for the id and the text. This costs about 40 ns. Every other line is left to simdjson.
 *
 * A line is followed by at least 64 readable bytes, the first of them a control character; see fast_parser.h. */

#ifndef FASTRPC_ANSWER_PARSER_H
#define FASTRPC_ANSWER_PARSER_H

#include "answer.h"
#include "fast_parser.h"

#define FASTRPC_ANSWER_HEAD "{\"jsonrpc\":\"2.0\",\"id\":"
#define FASTRPC_ANSWER_TEXT ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\""

/* Read a line up to its tail; return 0 for a line with another head. */
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
