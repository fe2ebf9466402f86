/* The texts that are sent: different from call to call, always the same for the same id. */
#ifndef CLIENT_TEXTS_H
#define CLIENT_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_ROOM = 128 };

/* A number by chance, always the same for the same value. */
uint64_t mix(uint64_t value);

/*
 * Write the text of call `id`: a few words, about 25 bytes. One in sixteen has a character that JSON
 * escapes, one in sixteen a letter beyond ASCII. Returns its length.
 */
size_t make_text(int64_t id, char text[TEXT_ROOM]);

/* Write a text of exactly `size` bytes, made of such phrases; with `ascii` of those that are ASCII. */
void make_long_text(int64_t id, size_t size, bool ascii, char *text);

#endif
