/*
 * Calls that sleep, and one small echo after the other beside them: does a slow tool delay a fast one?
 *
 * A round sends all sleepers at once and then a probe, the next one when its answer is there, until the
 * last sleeper has answered. Here the client has to look at the ids while the clock runs; the answers are
 * parsed and compared when it has stopped, as everywhere. A sleeper that comes back too early voids the run.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "histogram.h"
#include "load.h"
#include "report.h"
#include "requests.h"

enum { PROBES = 4096, ROUNDS = 1000 };

static struct {
    int64_t first_id; /* of the sleepers; the probes follow */
    struct buffer requests, answers;
    size_t probe_ends[PROBES]; /* in the requests */
    int64_t probe_sent[PROBES], probe_came[PROBES];
    size_t probes; /* sent */
    size_t sleepers_back, probes_back;
    int64_t begin, first, end; /* the first byte out; the first and the last sleeper back */
    size_t written, searched; /* bytes of the requests, of the answers */
} turn;

static int64_t walls[ROUNDS];

static void prepare_turn(int64_t first_id) {
    turn.first_id = first_id;
    turn.requests.length = turn.answers.length = turn.written = turn.searched = 0;
    turn.probes = turn.sleepers_back = turn.probes_back = 0;
    for (size_t i = 0; i < options.sleepers; i++) append_request(&turn.requests, SLEEP, first_id + (int64_t)i);
    int64_t first_probe = first_id + (int64_t)options.sleepers;
    for (size_t i = 0; i < PROBES; i++) {
        append_request(&turn.requests, ECHO, first_probe + (int64_t)i);
        turn.probe_ends[i] = turn.requests.length;
    }
}

/* Let one probe more go out; the first goes with the sleepers before it. */
static void send_probe(void) {
    turn.probe_sent[turn.probes++] = now_ns();
}

/* Write what may go out, as far as the pipe takes it. True when there is nothing left to write. */
static bool write_allowed(void) {
    size_t end = turn.probe_ends[turn.probes - 1];
    if (turn.written == end) return true;
    ssize_t count = write(server.to, turn.requests.data + turn.written, end - turn.written);
    if (count > 0) turn.written += (size_t)count;
    else if (errno != EAGAIN && errno != EINTR) void_run("the server takes no more requests: %s", strerror(errno));
    return turn.written == end;
}

/* The id that a line seems to have; -1 for none. A quote in a text has a backslash before it: no mistake. */
static int64_t glance_at_id(const char *line, size_t length) {
    static const char KEY[] = "\"id\":";
    const char *key = memmem(line, length, KEY, sizeof KEY - 1);
    return key ? strtoll(key + sizeof KEY - 1, NULL, 10) : -1; /* a newline ends the line */
}

/* Count what has come; true when a probe is among it. */
static bool sort_answers(int64_t moment) {
    bool probe_came = false;
    int64_t first_probe = turn.first_id + (int64_t)options.sleepers;
    for (;;) {
        const char *line = turn.answers.data + turn.searched;
        const char *newline = memchr(line, '\n', turn.answers.length - turn.searched);
        if (!newline) return probe_came;
        size_t length = (size_t)(newline - line) + 1;
        if (glance_at_id(line, length) < first_probe) {
            if (turn.sleepers_back++ == 0) turn.first = moment;
            turn.end = moment;
        } else if (turn.probes_back < turn.probes) {
            turn.probe_came[turn.probes_back++] = moment;
            probe_came = true;
        } else {
            void_run("a message that is the answer to nothing in flight: %.*s", (int)(length < 200 ? length : 200), line);
        }
        turn.searched += length;
    }
}

/* The measured part. */
static void run_turn(void) {
    turn.begin = now_ns();
    send_probe();
    while (turn.sleepers_back < options.sleepers || turn.probes_back < turn.probes) {
        check_time("sleepers", turn.sleepers_back, options.sleepers);
        if (!write_allowed() && !wait_for_either()) continue;
        reserve(&turn.answers, READ_ROOM);
        ssize_t count = read(server.from, turn.answers.data + turn.answers.length, READ_ROOM);
        if (count == 0) void_run("the server closed its output after %zu of %zu sleepers", turn.sleepers_back, options.sleepers);
        if (count > 0) {
            turn.answers.length += (size_t)count;
            bool probe_came = sort_answers(now_ns());
            if (probe_came && turn.sleepers_back < options.sleepers && turn.probes < PROBES) send_probe();
        } else if (errno != EINTR) {
            void_run("read: %s", strerror(errno));
        }
    }
}

static void check_line(const char *line, size_t length, bool *seen) {
    yyjson_doc *doc = yyjson_read(line, length, 0);
    if (!doc) void_run("an answer is not JSON: %.*s", (int)(length < 200 ? length : 200), line);
    yyjson_val *id_value = yyjson_obj_get(yyjson_doc_get_root(doc), "id");
    int64_t number = yyjson_get_sint(id_value) - turn.first_id;
    if (!yyjson_is_int(id_value) || number < 0 || number >= (int64_t)(options.sleepers + turn.probes)) {
        void_run("a message that is the answer to nothing in flight: %.*s", (int)(length < 200 ? length : 200), line);
    }
    int64_t id = turn.first_id + number;
    if (seen[number]) void_run("call %lld is answered twice", (long long)id);
    seen[number] = true;
    check_result(result_of(doc, id, options.workload_name), number < (int64_t)options.sleepers ? SLEEP : ECHO, id);
    yyjson_doc_free(doc);
}

static void check_turn(bool count_it) {
    enum { TOO_EARLY_NS = 1000000 }; /* clocks that tick in milliseconds may be early by one */
    bool *seen = calloc(options.sleepers + turn.probes, sizeof *seen);
    if (!seen) void_run("the client is out of memory");
    for (size_t at = 0; at < turn.searched;) {
        const char *line = turn.answers.data + at;
        size_t length = (size_t)((const char *)memchr(line, '\n', turn.searched - at) - line) + 1;
        check_line(line, length, seen);
        at += length;
    }
    free(seen);
    if (turn.searched < turn.answers.length) void_run("more came than was asked for");
    if (turn.sleepers_back != options.sleepers) void_run("%zu answers to %zu sleepers", turn.sleepers_back, options.sleepers);
    if (turn.first - turn.begin < (int64_t)options.sleep_ms * 1000000 - TOO_EARLY_NS) {
        void_run("a call slept for %.3f of %zu ms", (double)(turn.first - turn.begin) / 1e6, options.sleep_ms);
    }
    for (size_t i = 0; count_it && i < turn.probes; i++) histogram_record(turn.probe_came[i] - turn.probe_sent[i]);
}

static int later(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Rounds for so many seconds; returns how many. The first of them may be warm-up. */
static size_t run_turns(double seconds, bool count_them, int64_t *next_id) {
    size_t rounds = 0;
    int64_t spent = 0;
    while (rounds < ROUNDS && (rounds == 0 || (double)spent < seconds * 1e9)) {
        prepare_turn(*next_id);
        set_alarm(options.timeout);
        run_turn();
        set_alarm(0);
        check_turn(count_them);
        *next_id += (int64_t)options.sleepers + PROBES;
        walls[rounds++] = turn.end - turn.begin;
        spent += turn.end - turn.begin;
    }
    return rounds;
}

void run_sleepers(void) {
    struct rusage usage;
    int64_t next_id = FIRST_ID;
    if (!options.sleepers) void_run("no sleepers");
    begin_session();
    run_turns(options.warm_up, false, &next_id);
    size_t rounds = run_turns(options.seconds, true, &next_id);
    long peak_kb = peak_memory_kb();
    set_alarm(options.timeout);
    int exit_code = end_server(&usage);
    qsort(walls, rounds, sizeof *walls, later);
    put_integer("sleepers", (int64_t)options.sleepers);
    put_integer("sleep_ms", (int64_t)options.sleep_ms);
    put_integer("rounds", (int64_t)rounds);
    put_integer("calls", (int64_t)histogram_count());
    put_real("wall_ms", (double)walls[rounds / 2] / 1e6);
    put_real("wall_most_ms", (double)walls[rounds - 1] / 1e6);
    put_real("us_per_sleeper", ((double)walls[rounds / 2] / 1e3 - (double)options.sleep_ms * 1e3) / (double)options.sleepers);
    put_text("unit", "us");
    put_percentiles(1);
    put_usage(&usage, peak_kb, exit_code);
}
