/*
 * The C reference: an MCP server over stdio as a good C programmer would write it, to measure fastrpc by.
 *
 * The whole way of a message is in this file; the shell (shell.c) and the descriptors of the
 * agent's tools (descriptors.c) lie beside it. One thread: read(2) fills a growing buffer, yyjson reads each
 * line in place, a table finds the method, the answer goes into one output buffer, and one write(2) sends
 * all answers of a batch. Every buffer is kept and grows to the largest line it meets; nothing is
 * allocated for a call but one that sleeps (sleepers.c). Strings are escaped sixteen bytes at a time,
 * numbers are carried as their text.
 *
 * Methods: initialize, ping, tools/list, tools/call of echo, add, payload, sleep and bash. tools/list
 * shows the descriptors, written by yyjson for every call, or, with --ready-list, copied as ready bytes.
 * Protocol versions: the four that shake hands. Every envelope is checked as fastrpc checks it, except:
 * nesting and the size of numbers have no bound, batches are refused in every version, and an id that is
 * a string with escapes comes back with the same value, perhaps spelt otherwise. Left out: cancellation,
 * progress, the protocol of 2026-07-28, children that outlive their shell. Calls run one after the other.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "buffer.h"
#include "descriptors.h"
#include "shell.h"
#include "sleepers.h"
#include "yyjson.h"

enum {
    LINE_LIMIT = 16 * 1024 * 1024,
    FLUSH_AT = 1024 * 1024, /* a batch of large answers is sent in pieces of about this size */
    ESCAPE_CHUNK = 4096,    /* room for the worst case, six bytes a byte, is made chunk by chunk */
};

enum {
    PARSE_ERROR = -32700,
    INVALID_REQUEST = -32600,
    METHOD_NOT_FOUND = -32601,
    INVALID_PARAMS = -32602,
    INTERNAL_ERROR = -32603,
};

/* ------------------------------------------------------------------ memory */

/* A bump allocator for yyjson: everything in it belongs to the message at hand and goes with it. */
struct arena {
    char *base;
    size_t used, size;
    size_t last; /* where the newest block begins: it alone can grow in place */
};

static void arena_reset(struct arena *arena, size_t needed) {
    arena->used = arena->last = 0;
    if (needed <= arena->size) return;
    size_t size = arena->size ? arena->size : READ_ROOM;
    while (size < needed) size *= 2;
    free(arena->base); /* nothing in it is needed any more: no copy */
    arena->base = grow(NULL, size + SLACK);
    arena->size = size;
}

static void *arena_malloc(void *context, size_t size) {
    struct arena *arena = context;
    size = (size + 15) & ~(size_t)15;
    if (size > arena->size - arena->used) return NULL;
    arena->last = arena->used;
    arena->used += size;
    return arena->base + arena->last;
}

static void *arena_realloc(void *context, void *block, size_t old_size, size_t size) {
    struct arena *arena = context;
    size_t rounded = (size + 15) & ~(size_t)15;
    if (block == arena->base + arena->last && rounded <= arena->size - arena->last) {
        arena->used = arena->last + rounded;
        return block;
    }
    void *moved = arena_malloc(context, size);
    if (moved) memcpy(moved, block, old_size < size ? old_size : size);
    return moved;
}

static void arena_free(void *context, void *block) {
    (void)context;
    (void)block;
}

static struct arena read_arena, write_arena;
static const yyjson_alc READ_MEMORY = {arena_malloc, arena_realloc, arena_free, &read_arena};
static const yyjson_alc WRITE_MEMORY = {arena_malloc, arena_realloc, arena_free, &write_arena};

/* ------------------------------------------------------------------ output */

static struct buffer output;

/* What stands for a byte that may not stand in a JSON string; NULL means \u00xx. */
static const char *short_escape(unsigned char byte) {
    switch (byte) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\b': return "\\b";
    case '\f': return "\\f";
    default: return NULL;
    }
}

static char *write_escape(char *to, unsigned char byte) {
    static const char HEX[] = "0123456789abcdef";
    const char *escape = short_escape(byte);
    if (escape) {
        memcpy(to, escape, 2);
        return to + 2;
    }
    memcpy(to, "\\u00", 4);
    to[4] = HEX[byte >> 4];
    to[5] = HEX[byte & 15];
    return to + 6;
}

/*
 * Escape `length` bytes of UTF-8 to `to`, which has room for 6 * length + 16. Sixteen readable bytes must
 * lie behind `text` whatever its length: what is loaded beyond its end is never looked at.
 */
static char *escape_chunk(char *to, const char *text, size_t length) {
    const char *end = text + length;
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i last_control = _mm_set1_epi8(0x1f);
    while (text < end) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)text);
        /* unsigned byte <= 0x1f: the smaller of the two is the byte itself */
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, last_control), block);
        __m128i escaped = _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash));
        __m128i special = _mm_or_si128(control, escaped);
        unsigned mask = (unsigned)_mm_movemask_epi8(special);
        size_t left = (size_t)(end - text);
        if (left < 16) mask &= (1u << left) - 1;
        _mm_storeu_si128((__m128i *)(void *)to, block);
        if (!mask) {
            size_t step = left < 16 ? left : 16;
            text += step;
            to += step;
            continue;
        }
        size_t plain = (size_t)__builtin_ctz(mask);
        to = write_escape(to + plain, (unsigned char)text[plain]);
        text += plain + 1;
    }
#else
    while (text < end) {
        unsigned char byte = (unsigned char)*text++;
        if (byte >= 0x20 && byte != '"' && byte != '\\') *to++ = (char)byte;
        else to = write_escape(to, byte);
    }
#endif
    return to;
}

/* Append the inside of a JSON string. `text` has SLACK behind it: it lies in one of our own buffers. */
static void append_escaped(struct buffer *buffer, const char *text, size_t length) {
    while (length) {
        size_t chunk = length < ESCAPE_CHUNK ? length : ESCAPE_CHUNK;
        reserve(buffer, 6 * chunk + 16);
        buffer->length = (size_t)(escape_chunk(buffer->data + buffer->length, text, chunk) - buffer->data);
        text += chunk;
        length -= chunk;
    }
}

/* Wait until the descriptor is ready: who started us may have left it non-blocking. */
static void wait_for(int descriptor, short events) {
    struct pollfd wanted = {.fd = descriptor, .events = events, .revents = 0};
    (void)poll(&wanted, 1, -1);
}

static void flush_output(void) {
    size_t sent = 0;
    while (sent < output.length) {
        ssize_t count = write(STDOUT_FILENO, output.data + sent, output.length - sent);
        if (count >= 0) sent += (size_t)count;
        else if (errno == EAGAIN) wait_for(STDOUT_FILENO, POLLOUT);
        else if (errno == EPIPE) exit(0); /* the client has left: not our error */
        else if (errno != EINTR) die("write");
    }
    output.length = 0;
}

/* ----------------------------------------------------------------- answers */

/* A checked request. Its values lie in the read arena, their strings in the line itself. */
struct request {
    yyjson_val *id; /* a string or the text of an integer; NULL when there is none to name */
    yyjson_val *params;
    size_t length; /* of the whole line: a bound for what is made of it */
};

static bool equals(const char *text, size_t length, const char *literal, size_t literal_length) {
    return length == literal_length && memcmp(text, literal, literal_length) == 0;
}

#define IS(value, literal) equals(unsafe_yyjson_get_str(value), unsafe_yyjson_get_len(value), (literal), sizeof(literal) - 1)

static void append_id(yyjson_val *id) {
    if (!id) {
        APPEND(&output, "null");
    } else if (yyjson_is_raw(id)) {
        append(&output, unsafe_yyjson_get_raw(id), unsafe_yyjson_get_len(id));
    } else {
        APPEND(&output, "\"");
        append_escaped(&output, unsafe_yyjson_get_str(id), unsafe_yyjson_get_len(id));
        APPEND(&output, "\"");
    }
}

static void begin_result(const struct request *request) {
    APPEND(&output, "{\"jsonrpc\":\"2.0\",\"id\":");
    append_id(request->id);
    APPEND(&output, ",\"result\":");
}

static void end_result(void) { APPEND(&output, "}\n"); }

/* `message` holds nothing that needs an escape; `name`, a string or NULL, is what it is about. */
static void answer_error(yyjson_val *id, int code, const char *message, yyjson_val *name) {
    APPEND(&output, "{\"jsonrpc\":\"2.0\",\"id\":");
    append_id(id);
    APPEND(&output, ",\"error\":{\"code\":");
    append_integer(&output, code);
    APPEND(&output, ",\"message\":\"");
    append(&output, message, strlen(message));
    if (name) {
        APPEND(&output, ": ");
        append_escaped(&output, unsafe_yyjson_get_str(name), unsafe_yyjson_get_len(name));
    }
    APPEND(&output, "\"}}\n");
}

static void refuse(yyjson_val *id, const char *why) { answer_error(id, INVALID_REQUEST, why, NULL); }

static void begin_text(const struct request *request) {
    begin_result(request);
    APPEND(&output, "{\"content\":[{\"type\":\"text\",\"text\":\"");
}

static void end_text(bool is_error) {
    if (is_error) APPEND(&output, "\"}],\"isError\":true}");
    else APPEND(&output, "\"}],\"isError\":false}");
    end_result();
}

/* A call that went wrong is told to the model. `message` holds nothing that needs an escape. */
static void answer_failure(const struct request *request, const char *message) {
    begin_text(request);
    append(&output, message, strlen(message));
    end_text(true);
}

/* ------------------------------------------------------------------- tools */

/* The member of an object, the last of equal ones as everywhere inside arguments; NULL for none. */
static yyjson_val *member(yyjson_val *object, const char *name, size_t length) {
    yyjson_val *found = NULL, *key, *value;
    size_t index, count;
    if (!yyjson_is_obj(object)) return NULL;
    yyjson_obj_foreach(object, index, count, key, value) {
        if (equals(unsafe_yyjson_get_str(key), unsafe_yyjson_get_len(key), name, length)) found = value;
    }
    return found;
}

#define MEMBER(object, name) member((object), (name), sizeof(name) - 1)

/* Numbers reach us as their text. False for a fraction, an exponent, or more than 64 bits. */
static bool to_integer(yyjson_val *value, int64_t *result) {
    if (!yyjson_is_raw(value)) return false;
    const char *digit = unsafe_yyjson_get_raw(value);
    const char *end = digit + unsafe_yyjson_get_len(value);
    bool negative = *digit == '-';
    int64_t sum = 0;
    for (digit += negative; digit < end; digit++) {
        if (*digit < '0' || *digit > '9') return false;
        int step = negative ? -(*digit - '0') : *digit - '0'; /* downwards, so that -2^63 fits */
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, step, &sum)) return false;
    }
    *result = sum;
    return true;
}

static void call_echo(const struct request *request, yyjson_val *arguments) {
    yyjson_val *text = MEMBER(arguments, "text");
    if (!yyjson_is_str(text)) {
        answer_failure(request, "text: expected a string");
        return;
    }
    begin_text(request);
    append_escaped(&output, unsafe_yyjson_get_str(text), unsafe_yyjson_get_len(text));
    end_text(false);
}

static void call_add(const struct request *request, yyjson_val *arguments) {
    int64_t a, b, sum;
    if (!to_integer(MEMBER(arguments, "a"), &a)) {
        answer_failure(request, "a: expected an integer of 64 bits");
    } else if (!to_integer(MEMBER(arguments, "b"), &b)) {
        answer_failure(request, "b: expected an integer of 64 bits");
    } else if (__builtin_add_overflow(a, b, &sum)) {
        answer_failure(request, "the sum does not fit into 64 bits");
    } else {
        begin_text(request);
        append_integer(&output, sum);
        end_text(false);
    }
}

/* Returns the object it is given: its JSON as a text, and from 2025-06-18 on as structured content too. */
static bool structured_content = false;

static void call_payload(const struct request *request, yyjson_val *arguments) {
    yyjson_val *object = MEMBER(arguments, "object");
    if (!yyjson_is_obj(object)) {
        answer_failure(request, "object: expected an object");
        return;
    }
    /* The writer asks beforehand for 18 bytes a value (two characters at least) and 6 a character, and
     * grows by half: never more than 16 times the line. */
    arena_reset(&write_arena, 16 * request->length + READ_ROOM);
    size_t length;
    char *json = yyjson_val_write_opts(object, 0, &WRITE_MEMORY, &length, NULL);
    if (!json) {
        answer_error(request->id, INTERNAL_ERROR, "the object could not be written", NULL);
        return;
    }
    begin_text(request);
    append_escaped(&output, json, length);
    if (structured_content) {
        APPEND(&output, "\"}],\"structuredContent\":");
        append(&output, json, length);
        APPEND(&output, ",\"isError\":false}");
        end_result();
    } else {
        end_text(false);
    }
}

static void call_sleep(const struct request *request, yyjson_val *arguments) {
    int64_t ms;
    if (!to_integer(MEMBER(arguments, "ms"), &ms) || ms < 0 || ms > SLEEP_MAX_MS) {
        answer_failure(request, "ms: expected an integer from 0 to an hour");
        return;
    }
    size_t begin = output.length;
    begin_text(request);
    APPEND(&output, "slept ");
    append_integer(&output, ms);
    APPEND(&output, " ms");
    end_text(false);
    put_to_sleep(ms, &output, begin);
}

static void call_bash(const struct request *request, yyjson_val *arguments) {
    static struct buffer text;
    yyjson_val *command = MEMBER(arguments, "command");
    yyjson_val *timeout = MEMBER(arguments, "timeout");
    int64_t timeout_ms = SHELL_TIMEOUT_MS;
    if (!yyjson_is_str(command) || strlen(unsafe_yyjson_get_str(command)) != unsafe_yyjson_get_len(command)) {
        answer_failure(request, "command: expected a string without NUL");
        return;
    }
    if (timeout && (!to_integer(timeout, &timeout_ms) || timeout_ms <= 0)) {
        answer_failure(request, "timeout: expected a positive integer");
        return;
    }
    text.length = 0;
    bool succeeded = run_shell(unsafe_yyjson_get_str(command), timeout_ms, &text);
    reserve(&text, SLACK);
    begin_text(request);
    append_escaped(&output, text.data, text.length);
    end_text(!succeeded);
}

/* ----------------------------------------------------------------- methods */

static bool shaken_hands = false;

static void do_initialize(const struct request *request) {
    static const char *const VERSIONS[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
    enum { LATEST = 3, FIRST_STRUCTURED = 2 };
    yyjson_val *wanted = MEMBER(request->params, "protocolVersion");
    if (!yyjson_is_str(wanted)) {
        answer_error(request->id, INVALID_PARAMS, "protocolVersion: expected a string", NULL);
        return;
    }
    int version = LATEST; /* the answer to a version that we do not speak */
    for (int i = 0; i <= LATEST; i++) {
        if (yyjson_equals_str(wanted, VERSIONS[i])) version = i;
    }
    shaken_hands = true;
    structured_content = version >= FIRST_STRUCTURED;
    begin_result(request);
    APPEND(&output, "{\"protocolVersion\":\"");
    append(&output, VERSIONS[version], strlen(VERSIONS[version]));
    APPEND(&output, "\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"reference\",\"version\":\"1.0\"}}");
    end_result();
}

static void do_ping(const struct request *request) {
    begin_result(request);
    APPEND(&output, "{}");
    end_result();
}

static bool ready_list = false;
static yyjson_doc *list_document;
static char *list_bytes; /* the same, written */
static size_t list_length;

static void write_ready_list(void) {
    list_document = describe_tools();
    list_bytes = list_document ? yyjson_write(list_document, 0, &list_length) : NULL;
    if (!list_bytes) die("the descriptors could not be written");
}

static void do_tools_list(const struct request *request) {
    if (MEMBER(request->params, "cursor")) {
        answer_error(request->id, INVALID_PARAMS, "cursor: there is one page only", NULL);
        return;
    }
    begin_result(request);
    if (ready_list) {
        append(&output, list_bytes, list_length);
    } else {
        size_t length;
        arena_reset(&write_arena, 16 * list_length + READ_ROOM);
        char *json = yyjson_val_write_opts(list_document->root, 0, &WRITE_MEMORY, &length, NULL);
        if (!json) die("the descriptors could not be written");
        append(&output, json, length);
    }
    end_result();
}

typedef void call_function(const struct request *, yyjson_val *arguments);

static const struct {
    const char *name;
    size_t length;
    call_function *call;
} TOOLS[] = {
    {"echo", 4, call_echo},
    {"add", 3, call_add},
    {"payload", 7, call_payload},
    {"sleep", 5, call_sleep},
    {"bash", 4, call_bash},
    {"Bash", 4, call_bash},
};

static void do_tools_call(const struct request *request) {
    yyjson_val *name = NULL, *arguments = NULL, *key, *value;
    yyjson_val *meta = NULL;
    size_t index, count;
    bool twice = false;
    if (!request->params) {
        answer_error(request->id, INVALID_PARAMS, "params: expected a name", NULL);
        return;
    }
    yyjson_obj_foreach(request->params, index, count, key, value) {
        yyjson_val **slot;
        if (IS(key, "name")) slot = &name;
        else if (IS(key, "arguments")) slot = &arguments;
        else if (IS(key, "_meta")) slot = &meta;
        else continue;
        twice |= *slot != NULL;
        *slot = value;
    }
    if (twice) {
        refuse(request->id, "a member of params is there twice");
        return;
    }
    if (!yyjson_is_str(name) || (arguments && !yyjson_is_obj(arguments))) {
        answer_error(request->id, INVALID_PARAMS, "expected a name, a string, and arguments, an object", NULL);
        return;
    }
    for (size_t i = 0; i < sizeof TOOLS / sizeof *TOOLS; i++) {
        if (equals(unsafe_yyjson_get_str(name), unsafe_yyjson_get_len(name), TOOLS[i].name, TOOLS[i].length)) {
            TOOLS[i].call(request, arguments);
            return;
        }
    }
    answer_error(request->id, INVALID_PARAMS, "unknown tool", name);
}

static const struct {
    const char *name;
    size_t length;
    void (*answer)(const struct request *);
    bool early; /* may come before initialize */
} METHODS[] = {
    {"tools/call", 10, do_tools_call, false},
    {"tools/list", 10, do_tools_list, false},
    {"ping", 4, do_ping, true},
    {"initialize", 10, do_initialize, true},
};

enum { METHOD_COUNT = sizeof METHODS / sizeof *METHODS };

static void dispatch(const struct request *request, yyjson_val *method) {
    const char *name = unsafe_yyjson_get_str(method);
    size_t length = unsafe_yyjson_get_len(method);
    size_t i = 0;
    while (i < METHOD_COUNT && !equals(name, length, METHODS[i].name, METHODS[i].length)) i++;
    if (!shaken_hands && !(i < METHOD_COUNT && METHODS[i].early)) {
        answer_error(request->id, INVALID_REQUEST, "the first request must be initialize", NULL);
    } else if (i == METHOD_COUNT) {
        answer_error(request->id, METHOD_NOT_FOUND, "unknown method", method);
    } else {
        METHODS[i].answer(request);
    }
}

/* ---------------------------------------------------------------- messages */

static bool is_valid_id(yyjson_val *id) {
    if (yyjson_is_str(id)) return true;
    if (!yyjson_is_raw(id)) return false;
    const char *text = unsafe_yyjson_get_raw(id);
    for (size_t i = 0; i < unsafe_yyjson_get_len(id); i++) {
        if (text[i] == '.' || text[i] == 'e' || text[i] == 'E') return false;
    }
    return true;
}

/* The members of a message that have a meaning, and which of them are there more than once. */
struct envelope {
    yyjson_val *jsonrpc, *id, *method, *params;
    bool twice, id_twice, is_response;
};

static void handle_request(const struct envelope *envelope, size_t length) {
    yyjson_val *id = is_valid_id(envelope->id) && !envelope->id_twice ? envelope->id : NULL;
    yyjson_val *jsonrpc = envelope->jsonrpc, *params = envelope->params;
    if (envelope->twice) refuse(id, "a member of the envelope is there twice");
    else if (envelope->is_response) refuse(id, "a request holds no result and no error");
    else if (envelope->id && !id) refuse(NULL, "id: expected a string or an integer");
    else if (!yyjson_is_str(jsonrpc) || !IS(jsonrpc, "2.0")) refuse(id, "jsonrpc: expected \\\"2.0\\\"");
    else if (!yyjson_is_str(envelope->method)) refuse(id, "method: expected a string");
    else if (params && !yyjson_is_obj(params)) answer_error(id, INVALID_PARAMS, "params: expected an object", NULL);
    else dispatch(&(struct request){.id = id, .params = params, .length = length}, envelope->method);
}

/* Take the envelope apart in one pass over its members, then answer what waits for an answer. */
static void handle_message(yyjson_val *root, size_t length) {
    struct envelope envelope = {0};
    yyjson_val *key, *value;
    size_t index, count;
    if (!yyjson_is_obj(root)) {
        refuse(NULL, "expected a JSON object");
        return;
    }
    yyjson_obj_foreach(root, index, count, key, value) {
        yyjson_val **slot;
        if (IS(key, "jsonrpc")) slot = &envelope.jsonrpc;
        else if (IS(key, "id")) slot = &envelope.id;
        else if (IS(key, "method")) slot = &envelope.method;
        else if (IS(key, "params")) slot = &envelope.params;
        else {
            envelope.is_response |= IS(key, "result") || IS(key, "error");
            continue;
        }
        if (*slot) envelope.twice = true;
        if (*slot && slot == &envelope.id) envelope.id_twice = true;
        *slot = value;
    }
    bool is_notification = yyjson_is_str(envelope.method) && !envelope.id;
    bool is_response = envelope.is_response && !envelope.method;
    if (!is_notification && !is_response) handle_request(&envelope, length); /* nobody waits for those */
}

static bool is_blank(const char *line, size_t length) {
    const char *end = line + length;
    while (line < end && (*line == ' ' || *line == '\t' || *line == '\r')) line++;
    return line == end;
}

/*
 * Answer one line. It is read in place: yyjson wants zeros behind it and writes unescaped strings over
 * it, so what stands behind (the newline, the next line) is put aside for that moment.
 */
static void handle_line(char *line, size_t length) {
    char behind[YYJSON_PADDING_SIZE];
    if (is_blank(line, length)) return;
    memcpy(behind, line + length, sizeof behind);
    memset(line + length, 0, sizeof behind);
    arena_reset(&read_arena, yyjson_read_max_memory_usage(length, YYJSON_READ_INSITU));
    yyjson_read_err error;
    yyjson_doc *doc = yyjson_read_opts(line, length, YYJSON_READ_INSITU | YYJSON_READ_NUMBER_AS_RAW, &READ_MEMORY, &error);
    memcpy(line + length, behind, sizeof behind);
    if (doc) {
        handle_message(yyjson_doc_get_root(doc), length);
    } else {
        char message[160];
        snprintf(message, sizeof message, "byte %zu: %s", error.pos, error.msg);
        answer_error(NULL, PARSE_ERROR, message, NULL);
    }
    if (output.length > FLUSH_AT) flush_output();
}

/* ------------------------------------------------------------------- input */

static struct {
    char *data;
    size_t start; /* of the line that is not complete yet */
    size_t searched; /* no newline before here */
    size_t end, capacity;
    bool skipping; /* within a line that was too long */
} input;

/* Make room for one full read behind what is there. */
static void make_room(void) {
    size_t kept = input.end - input.start;
    if (input.capacity >= input.end + READ_ROOM + SLACK) return;
    if (input.start) {
        memmove(input.data, input.data + input.start, kept);
        input.searched -= input.start;
        input.start = 0;
        input.end = kept;
    }
    if (input.capacity >= kept + READ_ROOM + SLACK) return;
    input.capacity = input.capacity ? 2 * input.capacity : 4 * READ_ROOM;
    input.data = grow(input.data, input.capacity);
}

static void refuse_long_line(void) { answer_error(NULL, PARSE_ERROR, "the line is longer than 16 MiB", NULL); }

static void handle_complete_lines(void) {
    char *newline;
    while ((newline = memchr(input.data + input.searched, '\n', input.end - input.searched))) {
        size_t length = (size_t)(newline - input.data) - input.start;
        if (input.skipping) input.skipping = false;
        else if (length > LINE_LIMIT) refuse_long_line();
        else handle_line(input.data + input.start, length);
        input.start = input.searched = (size_t)(newline - input.data) + 1;
    }
    input.searched = input.end;
    if (!input.skipping && input.end - input.start > LINE_LIMIT) {
        refuse_long_line();
        input.skipping = true;
    }
    if (input.skipping || input.start == input.end) input.start = input.searched = input.end = 0;
}

static void serve(void) {
    for (;;) {
        wake_sleepers(&output);
        flush_output();
        if (anyone_sleeps() && !wait_or_wake(STDIN_FILENO)) continue;
        make_room();
        ssize_t count = read(STDIN_FILENO, input.data + input.end, input.capacity - input.end - SLACK);
        if (count > 0) {
            input.end += (size_t)count;
            handle_complete_lines();
        } else if (count == 0) {
            break;
        } else if (errno == EAGAIN) {
            wait_for(STDIN_FILENO, POLLIN);
        } else if (errno != EINTR) {
            die("read");
        }
    }
    if (input.end > input.start) handle_line(input.data + input.start, input.end - input.start); /* no newline */
    flush_output();
    for (; anyone_sleeps(); flush_output()) {
        (void)wait_or_wake(-1);
        wake_sleepers(&output);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--ready-list") == 0) {
            ready_list = true;
        } else {
            fprintf(stderr, "usage: %s [--ready-list]\n", argv[0]);
            return 2;
        }
    }
    signal(SIGPIPE, SIG_IGN); /* a client that has left shows as EPIPE */
    write_ready_list();
    serve();
    return 0;
}
