/*
 * The load: the client keeps a window of requests in flight and counts the newlines that come back.
 *
 * It comes in passes. A pass prepares its requests, then the clock starts; while it runs the client only
 * writes, reads and counts; when it has stopped every answer is parsed and compared: its id (answers may
 * come in any order) and what is in it.
 */
#define _GNU_SOURCE

#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"
#include "http.h"
#include "report.h"
#include "requests.h"

enum {
    PASS_BYTES = 1024 * 1024, /* of requests or answers in a pass: they should stay in the cache */
    PASS_CALLS = 65536,
};

static const double PASS_SECONDS = 0.1;

/* -------------------------------------------------------------- one pass */

struct pass pass;

static struct {
    int64_t elapsed, server_cpu, client_cpu; /* ns, while the clock ran */
    size_t calls, request_bytes, answer_bytes;
    size_t passes;
} total;

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool over_http(void) { return options.workload == HTTP_CALLS; }

static void prepare_pass(size_t calls) {
    pass.first_id += (int64_t)pass.calls;
    pass.calls = calls;
    pass.requests.length = pass.answers.length = 0;
    pass.arrival_count = 0;
    for (size_t i = 0; i < calls; i++) {
        int64_t id = pass.first_id + (int64_t)i;
        if (over_http()) append_http_request(&pass.requests, id);
        else append_request(&pass.requests, main_request(), id);
        pass.ends[i] = pass.requests.length;
        pass.seen[i] = false;
    }
}

static size_t count_newlines(const char *bytes, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += bytes[i] == '\n';
    return count;
}

/* Write requests up to byte `end` as far as the pipe takes them. Returns how many bytes are out by now. */
static size_t write_requests(size_t written, size_t end, size_t *begun, int64_t moment) {
    size_t most = options.piece ? options.piece : end - written;
    ssize_t count = write(server.to, pass.requests.data + written, end - written < most ? end - written : most);
    if (count < 0) {
        if (errno != EAGAIN && errno != EINTR) void_run("the server takes no more requests: %s", strerror(errno));
        return written;
    }
    written += (size_t)count;
    while (*begun < pass.calls && (*begun ? pass.ends[*begun - 1] : 0) < written) pass.sent[(*begun)++] = moment;
    return written;
}

void record_arrival(int64_t moment) {
    if (pass.arrival_count == pass.arrival_capacity) {
        pass.arrival_capacity += PASS_CALLS;
        pass.arrivals = grow(pass.arrivals, pass.arrival_capacity * sizeof *pass.arrivals);
    }
    pass.arrivals[pass.arrival_count++] = (struct arrival){pass.answers.length, moment};
}

/* The measured part: keep `window` requests in flight until all are answered. */
static void run_pass(size_t window) {
    size_t answered = 0, written = 0, begun = 0;
    int64_t now = now_ns();
    while (answered < pass.calls) {
        size_t allowed = answered + window < pass.calls ? answered + window : pass.calls;
        size_t end = pass.ends[allowed - 1];
        if (written < end) {
            written = write_requests(written, end, &begun, now);
            if (written < end && !wait_for_either()) {
                check_time("answers", answered, pass.calls);
                now = now_ns();
                continue;
            }
        }
        reserve(&pass.answers, READ_ROOM);
        ssize_t count = read(server.from, pass.answers.data + pass.answers.length, READ_ROOM);
        now = now_ns();
        if (count > 0) {
            answered += count_newlines(pass.answers.data + pass.answers.length, (size_t)count);
            pass.answers.length += (size_t)count;
            record_arrival(now);
        } else if (count == 0) {
            void_run("the server closed its output after %zu of %zu answers", answered, pass.calls);
        } else if (errno != EINTR) {
            void_run("read: %s", strerror(errno));
        }
        check_time("answers", answered, pass.calls);
    }
}

/* ----------------------------------------------------------------- checking */

/* Check one answer and return the number of its request within the pass. */
static size_t check_answer(const char *line, size_t length) {
    yyjson_doc *doc = yyjson_read(line, length, 0);
    if (!doc) void_run("an answer is not JSON: %.*s", (int)(length < 200 ? length : 200), line);
    yyjson_val *id_value = yyjson_obj_get(yyjson_doc_get_root(doc), "id");
    int64_t id = yyjson_get_sint(id_value);
    if (!yyjson_is_int(id_value) || id < pass.first_id || id >= pass.first_id + (int64_t)pass.calls) {
        void_run("a message that is the answer to nothing in flight: %.*s", (int)(length < 200 ? length : 200), line);
    }
    size_t number = (size_t)(id - pass.first_id);
    if (pass.seen[number]) void_run("call %lld is answered twice", (long long)id);
    pass.seen[number] = true;
    check_answer_to(doc, main_request(), id);
    yyjson_doc_free(doc);
    return number;
}

/* Check every answer of the pass; with `count_it` its times go into the histogram. */
static void check_pass(bool count_it) {
    size_t at = 0, arrival = 0, answers = 0;
    while (at < pass.answers.length) {
        const char *line = pass.answers.data + at;
        const char *newline = memchr(line, '\n', pass.answers.length - at);
        if (!newline) void_run("more came than was asked for: %.200s", line);
        size_t end = (size_t)(newline - pass.answers.data) + 1;
        size_t number = check_answer(line, end - at);
        if (over_http() && number != pass.asked[answers]) {
            void_run("call %lld is answered on another's connection", (long long)(pass.first_id + (int64_t)number));
        }
        while (pass.arrivals[arrival].end < end) arrival++;
        if (count_it) histogram_record(pass.arrivals[arrival].moment - pass.sent[number]);
        at = end;
        answers++;
    }
    if (answers != pass.calls) void_run("%zu answers to %zu calls", answers, pass.calls);
}

/* Prepare, run and check one pass. Returns how long it ran, in ns. */
static int64_t measure_pass(size_t calls, bool count_it) {
    clockid_t server_clock;
    bool has_clock = clock_getcpuclockid(server.pid, &server_clock) == 0;
    prepare_pass(calls);
    set_alarm(options.timeout);
    int64_t server_before = has_clock ? clock_ns(server_clock) : 0;
    int64_t client_before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int64_t begin = now_ns();
    if (over_http()) run_http_pass();
    else run_pass(options.window);
    int64_t elapsed = now_ns() - begin;
    int64_t client_after = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int64_t server_after = has_clock ? clock_ns(server_clock) : 0;
    set_alarm(0);
    check_pass(count_it);
    if (count_it) {
        total.elapsed += elapsed;
        total.server_cpu += server_after - server_before;
        total.client_cpu += client_after - client_before;
        total.calls += calls;
        total.request_bytes += pass.requests.length;
        total.answer_bytes += pass.answers.length;
        total.passes++;
    }
    return elapsed;
}

/* Warm up with growing passes, and return how many calls a measured pass should have. */
static size_t warm_up(void) {
    size_t calls = PASS_BYTES / request_size(main_request());
    if (calls > 16) calls = 16;
    if (calls < options.window) calls = options.window;
    if (calls == 0) calls = 1;
    int64_t spent = 0, elapsed;
    if (calls > PASS_CALLS) void_run("a window of %zu is too large", calls);
    for (;;) {
        elapsed = measure_pass(calls, false);
        spent += elapsed;
        if ((double)spent >= options.warm_up * 1e9) break;
        if ((double)elapsed < PASS_SECONDS / 4 * 1e9 && calls * 2 <= PASS_CALLS) calls *= 2;
    }
    double wanted = PASS_SECONDS * 1e9 * (double)calls / (double)(elapsed > 0 ? elapsed : 1);
    size_t bytes = (pass.answers.length > pass.requests.length ? pass.answers.length : pass.requests.length) / calls;
    double most = PASS_BYTES / (double)(bytes ? bytes : 1);
    if (most > PASS_CALLS) most = PASS_CALLS;
    if (wanted > most) wanted = most;
    return wanted > (double)options.window ? (size_t)wanted : options.window;
}

/* ---------------------------------------------------------------- workloads */

static void prepare_passes(void) {
    pass.first_id = FIRST_ID;
    pass.ends = grow(NULL, PASS_CALLS * sizeof *pass.ends);
    pass.sent = grow(NULL, PASS_CALLS * sizeof *pass.sent);
    pass.asked = grow(NULL, PASS_CALLS * sizeof *pass.asked);
    pass.seen = grow(NULL, PASS_CALLS * sizeof *pass.seen);
}

void begin_session(void) {
    enum { START_SECONDS = 60 }; /* a busy machine may take that long to start a program */
    set_alarm(options.timeout > START_SECONDS ? options.timeout : START_SECONDS);
    int64_t begin = spawn_server();
    if (options.modern) return;
    shake_hands();
    put_real("start_ms", (double)(now_ns() - begin) / 1e6);
    acknowledge();
}

void run_load(void) {
    struct rusage usage;
    if (over_http()) begin_http_session();
    else begin_session(); /* before the large buffers: the child must not inherit our memory's peak */
    prepare_passes();
    put_real("first_call_us", (double)measure_pass(1, false) / 1e3);
    size_t calls = warm_up();
    while ((double)total.elapsed < options.seconds * 1e9 || total.passes == 0) measure_pass(calls, true);
    long peak_kb = peak_memory_kb();
    set_alarm(options.timeout);
    int exit_code = over_http() ? end_http_server(&usage) : end_server(&usage);

    double count = (double)total.calls;
    put_integer("window", (int64_t)options.window);
    put_integer("calls", (int64_t)total.calls);
    put_integer("passes", (int64_t)total.passes);
    put_real("seconds", (double)total.elapsed / 1e9);
    put_real("calls_per_second", count * 1e9 / (double)total.elapsed);
    put_text("unit", "us");
    put_percentiles(1);
    put_real("server_cpu_us_per_call", (double)total.server_cpu / 1e3 / count);
    put_real("client_cpu_us_per_call", (double)total.client_cpu / 1e3 / count);
    double bytes = options.printed ? (double)options.printed * count : (double)total.request_bytes;
    put_real("mb_per_second", bytes * 1e3 / (double)total.elapsed); /* one way: what went in, or was printed */
    put_real("ns_per_byte", (double)total.elapsed / bytes);
    put_real("request_bytes", (double)total.request_bytes / count);
    put_real("answer_bytes", (double)total.answer_bytes / count);
    put_usage(&usage, peak_kb, exit_code);
}

/* ------------------------------------------------------------------- memory */

/* Echo calls until `calls` have been made in all. */
static void call_until(size_t calls, size_t *made) {
    while (*made < calls) {
        size_t more = calls - *made < PASS_CALLS ? calls - *made : PASS_CALLS;
        measure_pass(more, true);
        *made += more;
    }
}

/* One call of a tool that sleeps: from here on a server of Python has its event loop. */
static void sleep_once(void) {
    struct buffer line = {0};
    append_request(&line, SLEEP, 2);
    reserve(&line, 1);
    line.data[line.length] = '\0';
    send_line(line.data);
    yyjson_doc *doc = read_answer("a call that sleeps");
    check_result(result_of(doc, 2, "a call that sleeps"), SLEEP, 2);
    yyjson_doc_free(doc);
    free(line.data);
}

void run_memory(void) {
    static const struct timespec QUIET = {.tv_nsec = 300000000}; /* what a server puts off till then is done */
    struct rusage usage;
    size_t made = 0;
    begin_session();
    put_integer("rss_start_kb", memory_kb());
    nanosleep(&QUIET, NULL);
    put_integer("rss_idle_kb", memory_kb());
    if (options.sleepers) sleep_once();
    put_integer("rss_loop_kb", memory_kb());
    prepare_passes();
    call_until(options.calls / 10, &made);
    long warm_kb = memory_kb();
    call_until(options.calls, &made);
    long end_kb = memory_kb(), peak_kb = peak_memory_kb();
    set_alarm(options.timeout);
    int exit_code = end_server(&usage);
    put_integer("calls", (int64_t)made);
    put_integer("rss_warm_kb", warm_kb);
    put_integer("rss_end_kb", end_kb);
    put_real("growth_bytes_per_call", (double)(end_kb - warm_kb) * 1024 / ((double)options.calls * 0.9));
    put_text("unit", "us");
    put_percentiles(1);
    put_real("server_cpu_us_per_call", (double)total.server_cpu / 1e3 / (double)total.calls);
    put_usage(&usage, peak_kb, exit_code);
}
