/*
 * The load client: drives one MCP server over its pipes, checks every answer, prints one JSON object.
 *
 *     client --workload echo --window 256 --seconds 0.5 --server-cpu 1 --client-cpu 1 -- ./server
 *
 * The load comes in passes. A pass prepares its requests, then the clock starts; while it runs the client
 * only writes, reads and counts newlines; when it has stopped every answer is parsed and compared: its id
 * (answers may come in any order) and its text. Request texts differ from call to call. **A wrong answer
 * voids the run**: {"void": reason} and exit code 1. A server that sends anything that was not asked for,
 * notifications included, is void too.
 *
 * Workloads: echo (tools/call), list (tools/list), start (spawn to the answers of initialize and
 * tools/list, many times) and bare (spawn to exit: what any process of that kind costs).
 *
 * The histogram is exact to 0.1 %. The server's CPU time is its process clock around the passes, its
 * memory the high-water mark of its own address space; children of the server are in neither.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"
#include "histogram.h"
#include "texts.h"

enum {
    PASS_BYTES = 8 * 1024 * 1024, /* of requests or answers in a pass: they should stay in the cache */
    PASS_CALLS = 65536,
    FIRST_ID = 1000,
};

static const double PASS_SECONDS = 0.1;

/* ----------------------------------------------------------------- options */

struct options options = {
    .workload_name = "echo", .window = 1, .starts = 20, .seconds = 0.5, .warm_up = 0.2, .timeout = 20,
    .client_cpu = -1, .server_cpu = -1,
};

__attribute__((noreturn)) static void usage(const char *problem) {
    fprintf(stderr,
            "client: %s\n"
            "usage: client --workload echo|list|start|bare [--window N] [--seconds S] [--warm-up S] [--tools N]\n"
            "              [--starts N] [--timeout S] [--client-cpu N] [--server-cpu N] -- COMMAND [ARGUMENT...]\n",
            problem);
    exit(2);
}

static double number_option(const char *name, const char *text, double least) {
    char *end;
    double value = text ? strtod(text, &end) : 0;
    if (!text || *text == '\0' || *end || !(value >= least && value <= 1e6)) usage(name);
    return value;
}

static void read_workload(const char *name) {
    static const char *const NAMES[] = {"echo", "list", "start", "bare"};
    for (size_t i = 0; name && i < sizeof NAMES / sizeof *NAMES; i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            options.workload = (enum workload)i;
            options.workload_name = NAMES[i];
            return;
        }
    }
    usage("--workload: expected echo, list, start or bare");
}

static void read_options(int argc, char **argv) {
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
        const char *name = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--workload") == 0) read_workload(value);
        else if (strcmp(name, "--window") == 0) options.window = (size_t)number_option(name, value, 1);
        else if (strcmp(name, "--tools") == 0) options.tools = (size_t)number_option(name, value, 0);
        else if (strcmp(name, "--starts") == 0) options.starts = (size_t)number_option(name, value, 1);
        else if (strcmp(name, "--seconds") == 0) options.seconds = number_option(name, value, 0);
        else if (strcmp(name, "--warm-up") == 0) options.warm_up = number_option(name, value, 0);
        else if (strcmp(name, "--timeout") == 0) options.timeout = (unsigned)number_option(name, value, 1);
        else if (strcmp(name, "--client-cpu") == 0) options.client_cpu = (int)number_option(name, value, 0);
        else if (strcmp(name, "--server-cpu") == 0) options.server_cpu = (int)number_option(name, value, 0);
        else usage(name);
    }
    if (i + 1 >= argc) usage("a command behind -- is missing");
    options.command = argv + i + 1;
}

/* ---------------------------------------------------------------- requests */

static void append(struct buffer *buffer, const char *bytes, size_t length) {
    reserve(buffer, length);
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
}

__attribute__((format(printf, 2, 3))) static void append_format(struct buffer *buffer, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text) void_run("a request is too long for the client");
    append(buffer, text, (size_t)length);
}

static void append_json_text(struct buffer *buffer, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '"' || byte == '\\') append_format(buffer, "\\%c", byte);
        else if (byte < 0x20) append_format(buffer, "\\u%04x", byte);
        else append(buffer, text + i, 1);
    }
}

static void append_request(struct buffer *buffer, int64_t id) {
    if (options.workload == TOOL_LISTS) {
        append_format(buffer, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"tools/list\",\"params\":{}}\n", (long long)id);
        return;
    }
    char text[TEXT_ROOM];
    size_t length = make_text(id, text);
    append_format(buffer, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"tools/call\",", (long long)id);
    append_format(buffer, "\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"");
    append_json_text(buffer, text, length);
    append_format(buffer, "\"}}}\n");
}

/* -------------------------------------------------------------- one pass */

/* Answers that came with one read: up to `end` bytes of the answers, at `moment`. */
struct arrival {
    size_t end;
    int64_t moment;
};

static struct {
    int64_t first_id;
    size_t calls;
    struct buffer requests, answers;
    size_t *ends;        /* of each request */
    int64_t *sent;       /* when the write began that took its first byte */
    bool *seen;
    struct arrival *arrivals;
    size_t arrival_count, arrival_capacity;
} pass;

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

static void prepare_pass(size_t calls) {
    pass.first_id += (int64_t)pass.calls;
    pass.calls = calls;
    pass.requests.length = pass.answers.length = 0;
    pass.arrival_count = 0;
    for (size_t i = 0; i < calls; i++) {
        append_request(&pass.requests, pass.first_id + (int64_t)i);
        pass.ends[i] = pass.requests.length;
        pass.seen[i] = false;
    }
}

static size_t count_newlines(const char *bytes, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += bytes[i] == '\n';
    return count;
}

/* Nothing more can be written at the moment: wait for either pipe. True when there is something to read. */
static bool wait_for_either(void) {
    struct pollfd pipes[2] = {{.fd = server.from, .events = POLLIN}, {.fd = server.to, .events = POLLOUT}};
    (void)poll(pipes, 2, -1);
    return pipes[0].revents != 0;
}

/* Write requests up to byte `end` as far as the pipe takes them. Returns how many bytes are out by now. */
static size_t write_requests(size_t written, size_t end, size_t *begun, int64_t moment) {
    ssize_t count = write(server.to, pass.requests.data + written, end - written);
    if (count < 0) {
        if (errno != EAGAIN && errno != EINTR) void_run("the server takes no more requests: %s", strerror(errno));
        return written;
    }
    written += (size_t)count;
    while (*begun < pass.calls && (*begun ? pass.ends[*begun - 1] : 0) < written) pass.sent[(*begun)++] = moment;
    return written;
}

static void record_arrival(int64_t moment) {
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

static void check_echo(yyjson_val *result, int64_t id) {
    char expected[TEXT_ROOM];
    size_t length = make_text(id, expected);
    yyjson_val *content = yyjson_obj_get(result, "content");
    yyjson_val *block = yyjson_arr_get_first(content);
    yyjson_val *text = yyjson_obj_get(block, "text");
    if (yyjson_get_bool(yyjson_obj_get(result, "isError"))) void_run("call %lld: the tool failed", (long long)id);
    if (yyjson_arr_size(content) != 1 || !yyjson_equals_str(yyjson_obj_get(block, "type"), "text")) {
        void_run("call %lld: expected one text block", (long long)id);
    }
    if (!yyjson_equals_strn(text, expected, length)) {
        void_run("call %lld: expected the text '%.*s', got '%.100s'", (long long)id, (int)length, expected,
                 yyjson_is_str(text) ? yyjson_get_str(text) : "(no text)");
    }
}

static void check_list(yyjson_val *result, int64_t id) {
    yyjson_val *tools = yyjson_obj_get(result, "tools"), *tool;
    size_t index, count;
    if (!yyjson_is_arr(tools)) void_run("list %lld: no tools", (long long)id);
    if (options.tools && yyjson_arr_size(tools) != options.tools) {
        void_run("list %lld: expected %zu tools, got %zu", (long long)id, options.tools, yyjson_arr_size(tools));
    }
    yyjson_arr_foreach(tools, index, count, tool) {
        if (!yyjson_is_str(yyjson_obj_get(tool, "name")) || !yyjson_is_obj(yyjson_obj_get(tool, "inputSchema"))) {
            void_run("list %lld: tool %zu has no name or no schema", (long long)id, index);
        }
    }
}

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
    yyjson_val *result = result_of(doc, id, options.workload_name);
    if (options.workload == TOOL_LISTS) check_list(result, id);
    else check_echo(result, id);
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
    run_pass(options.window);
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
    size_t calls = options.window < 16 ? 16 : options.window;
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

static yyjson_mut_doc *report;

static void put_real(const char *name, double value) {
    yyjson_mut_obj_add_real(report, yyjson_mut_doc_get_root(report), name, value);
}

static void put_integer(const char *name, int64_t value) {
    yyjson_mut_obj_add_sint(report, yyjson_mut_doc_get_root(report), name, value);
}

static void put_percentiles(double scale) {
    put_real("p50", histogram_percentile_us(0.50) * scale);
    put_real("p90", histogram_percentile_us(0.90) * scale);
    put_real("p99", histogram_percentile_us(0.99) * scale);
    put_real("p99_9", histogram_percentile_us(0.999) * scale);
    put_real("max", histogram_most_us() * scale);
    put_real("mean", histogram_mean_us() * scale);
}

static void report_usage(const struct rusage *usage, long peak_kb, int exit_code) {
    put_integer("peak_rss_kb", peak_kb ? peak_kb : usage->ru_maxrss);
    put_real("server_user_seconds", (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec / 1e6);
    put_real("server_system_seconds", (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec / 1e6);
    put_integer("exit_code", exit_code);
}

static void run_load(void) {
    struct rusage usage;
    set_alarm(options.timeout);
    int64_t begin = spawn_server(); /* before the large buffers: the child must not inherit our memory's peak */
    shake_hands();
    put_real("start_ms", (double)(now_ns() - begin) / 1e6);
    acknowledge();
    pass.first_id = FIRST_ID;
    pass.ends = grow(NULL, PASS_CALLS * sizeof *pass.ends);
    pass.sent = grow(NULL, PASS_CALLS * sizeof *pass.sent);
    pass.seen = grow(NULL, PASS_CALLS * sizeof *pass.seen);
    put_real("first_call_us", (double)measure_pass(1, false) / 1e3);
    size_t calls = warm_up();
    while ((double)total.elapsed < options.seconds * 1e9 || total.passes == 0) measure_pass(calls, true);
    long peak_kb = peak_memory_kb();
    set_alarm(options.timeout);
    int exit_code = end_server(&usage);

    double count = (double)total.calls;
    put_integer("window", (int64_t)options.window);
    put_integer("calls", (int64_t)total.calls);
    put_integer("passes", (int64_t)total.passes);
    put_real("seconds", (double)total.elapsed / 1e9);
    put_real("calls_per_second", count * 1e9 / (double)total.elapsed);
    yyjson_mut_obj_add_str(report, yyjson_mut_doc_get_root(report), "unit", "us");
    put_percentiles(1);
    put_real("server_cpu_us_per_call", (double)total.server_cpu / 1e3 / count);
    put_real("client_cpu_us_per_call", (double)total.client_cpu / 1e3 / count);
    put_real("request_bytes", (double)total.request_bytes / count);
    put_real("answer_bytes", (double)total.answer_bytes / count);
    report_usage(&usage, peak_kb, exit_code);
}

/* Spawn to the answer of initialize, and of a tools/list behind it. */
static void run_starts(void) {
    struct rusage usage;
    long peak_kb = 0;
    int exit_code = 0;
    int64_t list_sum = 0;
    for (size_t i = 0; i < options.starts; i++) {
        set_alarm(options.timeout);
        int64_t begin = spawn_server();
        shake_hands();
        histogram_record(now_ns() - begin);
        acknowledge();
        send_line("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{}}\n");
        yyjson_doc *doc = read_answer("tools/list");
        list_sum += now_ns() - begin;
        check_list(result_of(doc, 2, "tools/list"), 2);
        yyjson_doc_free(doc);
        if (peak_memory_kb() > peak_kb) peak_kb = peak_memory_kb();
        int code = end_server(&usage);
        if (code) exit_code = code;
    }
    yyjson_mut_obj_add_str(report, yyjson_mut_doc_get_root(report), "unit", "ms");
    put_integer("starts", (int64_t)options.starts);
    put_percentiles(1e-3);
    put_real("list_mean", (double)list_sum / 1e6 / (double)options.starts);
    report_usage(&usage, peak_kb, exit_code);
}

/* Spawn to exit, for a command that speaks no MCP. */
static void run_bare_starts(void) {
    struct rusage usage;
    int exit_code = 0;
    for (size_t i = 0; i < options.starts; i++) {
        set_alarm(options.timeout);
        int64_t begin = spawn_server();
        int code = end_server(&usage);
        histogram_record(now_ns() - begin);
        if (code) exit_code = code;
    }
    yyjson_mut_obj_add_str(report, yyjson_mut_doc_get_root(report), "unit", "ms");
    put_integer("starts", (int64_t)options.starts);
    put_percentiles(1e-3);
    report_usage(&usage, 0, exit_code);
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    prepare_signals();
    report = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(report, yyjson_mut_obj(report));
    yyjson_mut_obj_add_str(report, yyjson_mut_doc_get_root(report), "workload", options.workload_name);
    if (options.workload == STARTS) run_starts();
    else if (options.workload == BARE_STARTS) run_bare_starts();
    else run_load();
    char *json = yyjson_mut_write(report, 0, NULL);
    if (!json) void_run("the report cannot be written");
    puts(json);
    free(json);
    yyjson_mut_doc_free(report);
    return 0;
}
