/* Words by chance, from a generator that needs no state: a constant line flatters every parser. */
#include "texts.h"

#include <stdio.h>
#include <string.h>

uint64_t mix(uint64_t value) { /* splitmix64 */
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

size_t make_text(int64_t id, char text[TEXT_ROOM]) {
    static const char *const WORDS[] = {
        "build", "the", "main", "branch", "and", "run", "its", "tests", "list", "every", "file",
        "in", "source", "order", "then", "read", "config", "from", "disk", "while", "another", "task",
        "waits", "for", "output", "of", "step", "seven", "before", "it", "prints", "results",
    };
    static const char *const ODD[] = {
        "\n", "\"quoted\"", "back\\slash", "\t",
        "caf\xc3\xa9", "\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7", "\xe6\xbc\xa2\xe5\xad\x97", "\xf0\x9f\x9a\x80",
    };
    uint64_t random = mix((uint64_t)id);
    size_t length = (size_t)snprintf(text, TEXT_ROOM, "%x", (unsigned)(random >> 44));
    unsigned words = 2 + (unsigned)(random & 3);
    random >>= 2;
    for (unsigned i = 0; i < words; i++, random >>= 5) {
        length += (size_t)snprintf(text + length, TEXT_ROOM - length, " %s", WORDS[random & 31]);
    }
    random = mix(random ^ (uint64_t)id);
    if ((random & 7) == 0) length += (size_t)snprintf(text + length, TEXT_ROOM - length, " %s", ODD[(random >> 3) & 7]);
    return length;
}

enum { PHRASES = 4096 };

static struct {
    char text[TEXT_ROOM];
    size_t length;
    bool ascii;
} phrases[PHRASES];

static void make_phrases(void) {
    for (int64_t i = 0; i < PHRASES; i++) {
        size_t length = make_text(-1 - i, phrases[i].text);
        phrases[i].text[length++] = ' ';
        phrases[i].length = length;
        phrases[i].ascii = true;
        for (size_t at = 0; at < length; at++) phrases[i].ascii &= (unsigned char)phrases[i].text[at] < 0x80;
    }
}

/* The phrases follow each other as they lie, from a place that depends on the id. */
void make_long_text(int64_t id, size_t size, bool ascii, char *text) {
    if (phrases[0].length == 0) make_phrases();
    size_t length = 0;
    for (uint64_t next = mix((uint64_t)id); ; next++) {
        size_t number = next % PHRASES;
        if (ascii && !phrases[number].ascii) continue;
        if (phrases[number].length > size - length) break;
        memcpy(text + length, phrases[number].text, phrases[number].length);
        length += phrases[number].length;
    }
    memset(text + length, '.', size - length);
}
