/* What of a request's `_meta` goes on to the next server: all but what belongs to the connection it came by.
 *
 * The members are copied unchanged. The text is a JSON object that a parser has accepted, so nothing is
 * validated here. Costs one pass over it. */

#ifndef FASTRPC_CARRIED_META_H
#define FASTRPC_CARRIED_META_H

#include <Python.h>
#include <string.h>

#define FASTRPC_ENVELOPE "io.modelcontextprotocol/"

/* The token of a request's progress, and the members of the 2026-07-28 envelope; `HOP_KEYS` of
 * fastrpc/protocol/versions.py says the same. */
static const char *const fastrpc_hop_keys[] = {
    "progressToken",
    FASTRPC_ENVELOPE "protocolVersion",
    FASTRPC_ENVELOPE "clientCapabilities",
    FASTRPC_ENVELOPE "clientInfo",
    FASTRPC_ENVELOPE "serverInfo",
    FASTRPC_ENVELOPE "logLevel",
    FASTRPC_ENVELOPE "subscriptionId",
};

static inline int fastrpc_is_hop_key(const char *key, Py_ssize_t size) {
    for (size_t at = 0; at < sizeof(fastrpc_hop_keys) / sizeof(*fastrpc_hop_keys); ++at) {
        const char *known = fastrpc_hop_keys[at];
        if (strlen(known) == (size_t)size && memcmp(known, key, (size_t)size) == 0) { return 1; }
    }
    return 0;
}

static inline const char *fastrpc_behind_string(const char *at) {
    for (++at; *at != '"'; ++at) {
        if (*at == '\\') { ++at; }
    }
    return at + 1;
}

static inline const char *fastrpc_behind_space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') { ++at; }
    return at;
}

/* Return the comma or the brace after a value. */
static inline const char *fastrpc_behind_value(const char *at) {
    int depth = 0;
    for (;;) {
        if (*at == '"') {
            at = fastrpc_behind_string(at);
            continue;
        }
        if (*at == '{' || *at == '[') {
            ++depth;
        } else if (*at == '}' || *at == ']') {
            if (depth-- == 0) { return at; }
        } else if (*at == ',' && depth == 0) {
            return at;
        }
        ++at;
    }
}

/* Copy the members that go on, separated by commas, to `to`, which has room for the whole text. Return their
 * size; -1 if a key is written with escapes, which only a parser compares. A newline, which JSON allows
 * between tokens, would end the line that they are put into: it becomes a space. */
static inline Py_ssize_t fastrpc_carried_meta(const char *text, char *to) {
    char *end = to;
    const char *at = fastrpc_behind_space(text + 1);
    while (*at != '}') {
        const char *key = at, *behind = fastrpc_behind_string(at), *value;
        if (memchr(key, '\\', (size_t)(behind - key))) { return -1; }
        value = fastrpc_behind_value(behind);
        if (!fastrpc_is_hop_key(key + 1, behind - key - 2)) {
            if (end != to) { *end++ = ','; }
            for (; key < value; ++key) { *end++ = *key == '\n' || *key == '\r' ? ' ' : *key; }
        }
        at = *value == ',' ? fastrpc_behind_space(value + 1) : value;
    }
    return end - to;
}

#endif
