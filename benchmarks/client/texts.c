/* Words by chance, from a generator that needs no state: a constant line flatters every parser. */
#include "texts.h"

#include <stdio.h>

static uint64_t mix(uint64_t value) { /* splitmix64 */
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
