/* The texts that are echoed: different from call to call, always the same for the same id. */
#ifndef CLIENT_TEXTS_H
#define CLIENT_TEXTS_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_ROOM = 128 };

/*
 * Write the text of call `id`: a few words, about 25 bytes. One in sixteen has a character that JSON
 * escapes, one in sixteen a letter beyond ASCII. Returns its length.
 */
size_t make_text(int64_t id, char text[TEXT_ROOM]);

#endif
