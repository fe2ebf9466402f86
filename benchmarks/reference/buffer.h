/* Memory that grows and does not fail, and a buffer to append to: what every file here needs. */
#ifndef REFERENCE_BUFFER_H
#define REFERENCE_BUFFER_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    READ_ROOM = 64 * 1024, /* what a pipe holds, so what one read can bring */
    SLACK = 64,            /* readable bytes behind all data: vector loads, yyjson's padding */
};

static inline void die(const char *what) {
    fprintf(stderr, "reference server: %s: %s\n", what, strerror(errno));
    exit(1);
}

static inline void *grow(void *block, size_t size) {
    void *grown = realloc(block, size);
    if (!grown) die("out of memory");
    return grown;
}

struct buffer {
    char *data;
    size_t length, capacity;
};

static inline void buffer_grow(struct buffer *buffer, size_t more) {
    size_t capacity = buffer->capacity ? buffer->capacity : 2 * READ_ROOM;
    while (capacity - buffer->length < more) capacity *= 2;
    buffer->data = grow(buffer->data, capacity);
    buffer->capacity = capacity;
}

static inline void reserve(struct buffer *buffer, size_t more) {
    if (buffer->capacity - buffer->length < more) buffer_grow(buffer, more);
}

static inline void append(struct buffer *buffer, const char *bytes, size_t length) {
    reserve(buffer, length);
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
}

#define APPEND(buffer, literal) append((buffer), (literal), sizeof(literal) - 1)

static inline void append_integer(struct buffer *buffer, int64_t value) {
    char digits[20];
    char *first = digits + sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0) *--first = '-';
    append(buffer, first, (size_t)(digits + sizeof digits - first));
}

#endif
