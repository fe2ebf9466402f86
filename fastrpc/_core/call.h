/* A tools/call (or prompts/get, resources/read) as the strict pass finds it in its line: where its parts
 * lie. No functions, no costs; what fills it is fast_parser.h, what uses it the message, the plan and the
 * connection. */

#ifndef FASTRPC_CALL_H
#define FASTRPC_CALL_H

#include <Python.h>
#include <stdint.h>

#define FASTRPC_MOST_ARGUMENTS 16

struct fastrpc_argument {
    const char *key;
    Py_ssize_t key_size;
    const char *from, *to; /* the bytes of the value in the line */
    const char *text; /* of a string: what is between the quotes */
    Py_ssize_t size;
    int64_t integer; /* of an integer; of true and false, 1 and 0 */
    int beyond_ascii, escaped; /* of a string */
    char type; /* simdjson's letters: " for a string, l, t or f, n */
};

struct fastrpc_call {
    const char *id, *name; /* the name may be a URI */
    Py_ssize_t id_size, name_size;
    int has_arguments, has_meta, count;
    int wire; /* the message reader's, of the _meta */
    struct fastrpc_argument arguments[FASTRPC_MOST_ARGUMENTS];
    const char *method;
    Py_ssize_t method_size;
    int has_uri;
};

#endif
