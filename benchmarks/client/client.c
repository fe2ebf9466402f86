/*
 * The load client: drives one MCP server over its pipes, checks every answer, prints one JSON object.
 *
 *     client --workload echo --window 256 --seconds 0.5 --server-cpu 1 --client-cpu 1 -- ./server
 *
 * Requests are prepared before the clock starts and answers are checked after it has stopped: every id,
 * every text. Requests differ from call to call. **A wrong answer voids the run**: {"void": reason} and exit
 * code 1. A server that sends anything that was not asked for, notifications included, is void too.
 *
 * Workloads: echo, payload and shell (calls of such a tool); structure, texts and failing (calls of an echo that
 * returns {"text": text}, or the text twice, or fails with it); misfit (arguments that do not fit), unknown (no
 * such tool); list, ping, resource, prompt (tools/list, ping, resources/read, prompts/get); sleepers (calls that
 * sleep and a probe beside them), memory (what the server holds before and behind many calls), start (spawn to
 * the answers of initialize and tools/list, many times), bare (spawn to exit: what any process of that
 * kind costs), http (echo over HTTP, on connections that stay open) and http-start (spawn to the answer of
 * GET /readyz). Over HTTP the command has `{port}` where the server's port shall stand.
 *
 * The histogram is exact to 0.1 %. The server's CPU time is its process clock around the passes, its
 * memory the high-water mark of its own address space; children of the server are in neither.
 *
 * This file reads the options and takes the starts; load.c and sleepers.c are the loads, requests.c says
 * what is asked and what is right, http.c is HTTP, connection.c the server's process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "histogram.h"
#include "http.h"
#include "load.h"
#include "report.h"
#include "requests.h"

/* ----------------------------------------------------------------- options */

struct options options = {
    .workload_name = "echo", .window = 1, .starts = 20, .seconds = 0.5, .warm_up = 0.2, .timeout = 20,
    .client_cpu = -1, .server_cpu = -1, .shell_command = "true", .sleepers = 64, .sleep_ms = 10, .calls = 1000000,
    .connections = 1,
};

__attribute__((noreturn)) static void usage(const char *problem) {
    fprintf(stderr,
            "client: %s\n"
            "usage: client [OPTION...] -- COMMAND [ARGUMENT...]\n"
            "  --workload echo|list|payload|shell|sleepers|memory|start|bare|http|http-start|\n"
            "             structure|texts|failing|misfit|unknown|ping|resource|prompt\n"
            "  --window N  --seconds S  --warm-up S  --timeout S  --client-cpu N  --server-cpu N\n"
            "  --wire handshake|modern|session    modern: 2026-07-28, no handshake, an envelope in every request;\n"
            "                             session: http in a session of 2025-11-25 for each connection, not modern\n"
            "  --piece N                  the server can read at most N bytes at once\n"
            "  --size N --letters any|ascii       echo: texts of N bytes\n"
            "  --tools N                  list, memory: how many tools a list must hold; memory then asks for lists\n"
            "  --tool NAME                shell, sleepers, memory: what the tool is called\n"
            "  --shell TEXT --printed N   shell: the command, and how many bytes x it prints\n"
            "  --sleepers N --ms N        sleepers: calls at once; memory: 0 for none\n"
            "  --calls N                  memory\n"
            "  --starts N                 start, bare, http-start\n"
            "  --connections N --token TEXT       http\n"
            "  --answer echo|texts|failing        http: what each call gets\n",
            problem);
    exit(2);
}

static double number_option(const char *name, const char *text, double least) {
    char *end;
    double value = text ? strtod(text, &end) : 0;
    if (!text || *text == '\0' || *end || !(value >= least && value <= 1e8)) usage(name);
    return value;
}

static size_t size_option(const char *name, const char *text, double least) {
    return (size_t)number_option(name, text, least);
}

/* The number of the value among `names`, which a NULL ends. */
static int choice_option(const char *name, const char *text, const char *const *names) {
    for (int i = 0; text && names[i]; i++) {
        if (strcmp(text, names[i]) == 0) return i;
    }
    usage(name);
}

static const char *text_option(const char *name, const char *text) {
    if (!text || strlen(text) > 500 || strpbrk(text, "\n")) usage(name);
    return text;
}

static void read_workload(const char *name, const char *value) {
    static const char *const NAMES[] = {"echo", "list", "payload", "shell", "sleepers", "memory",
                                        "start", "bare", "http", "http-start",
                                        "structure", "texts", "failing", "misfit", "unknown", "ping",
                                        "resource", "prompt", NULL};
    options.workload = (enum workload)choice_option(name, value, NAMES);
    options.workload_name = NAMES[options.workload];
}

/* What belongs to one workload only. False when it is not such an option. */
static bool read_workload_option(const char *name, const char *value) {
    static const char *const LETTERS[] = {"any", "ascii", NULL}, *const ANSWERS[] = {"echo", "texts", "failing", NULL};
    if (strcmp(name, "--size") == 0) options.size = size_option(name, value, 0);
    else if (strcmp(name, "--letters") == 0) options.ascii = choice_option(name, value, LETTERS) == 1;
    else if (strcmp(name, "--tools") == 0) options.tools = size_option(name, value, 0);
    else if (strcmp(name, "--tool") == 0) options.tool = text_option(name, value);
    else if (strcmp(name, "--shell") == 0) options.shell_command = text_option(name, value);
    else if (strcmp(name, "--printed") == 0) options.printed = size_option(name, value, 0);
    else if (strcmp(name, "--sleepers") == 0) options.sleepers = size_option(name, value, 0);
    else if (strcmp(name, "--ms") == 0) options.sleep_ms = size_option(name, value, 0);
    else if (strcmp(name, "--calls") == 0) options.calls = size_option(name, value, 10);
    else if (strcmp(name, "--starts") == 0) options.starts = size_option(name, value, 1);
    else if (strcmp(name, "--connections") == 0) options.connections = size_option(name, value, 1);
    else if (strcmp(name, "--token") == 0) options.token = text_option(name, value);
    else if (strcmp(name, "--answer") == 0) options.answer = (enum answer)choice_option(name, value, ANSWERS);
    else return false;
    return true;
}

static void read_options(int argc, char **argv) {
    static const char *const WIRES[] = {"handshake", "modern", "session", NULL};
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
        const char *name = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--workload") == 0) read_workload(name, value);
        else if (strcmp(name, "--window") == 0) options.window = size_option(name, value, 1);
        else if (strcmp(name, "--wire") == 0) {
            int wire = choice_option(name, value, WIRES);
            options.modern = wire == 1;
            options.session = wire == 2;
        }
        else if (strcmp(name, "--piece") == 0) options.piece = size_option(name, value, 1);
        else if (strcmp(name, "--seconds") == 0) options.seconds = number_option(name, value, 0);
        else if (strcmp(name, "--warm-up") == 0) options.warm_up = number_option(name, value, 0);
        else if (strcmp(name, "--timeout") == 0) options.timeout = (unsigned)number_option(name, value, 1);
        else if (strcmp(name, "--client-cpu") == 0) options.client_cpu = (int)number_option(name, value, 0);
        else if (strcmp(name, "--server-cpu") == 0) options.server_cpu = (int)number_option(name, value, 0);
        else if (!read_workload_option(name, value)) usage(name);
    }
    if (i + 1 >= argc) usage("a command behind -- is missing");
    options.command = argv + i + 1;
    if (options.workload == HTTP_CALLS) options.window = options.connections;
}

/* ------------------------------------------------------------------- starts */

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
        check_result(result_of(doc, 2, "tools/list"), LIST, 2);
        yyjson_doc_free(doc);
        if (peak_memory_kb() > peak_kb) peak_kb = peak_memory_kb();
        int code = end_server(&usage);
        if (code) exit_code = code;
    }
    put_text("unit", "ms");
    put_integer("starts", (int64_t)options.starts);
    put_percentiles(1e-3);
    put_real("list_mean", (double)list_sum / 1e6 / (double)options.starts);
    put_usage(&usage, peak_kb, exit_code);
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
    put_text("unit", "ms");
    put_integer("starts", (int64_t)options.starts);
    put_percentiles(1e-3);
    put_usage(&usage, 0, exit_code);
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    prepare_signals();
    put_text("workload", options.workload_name);
    switch (options.workload) {
    case STARTS: run_starts(); break;
    case BARE_STARTS: run_bare_starts(); break;
    case HTTP_STARTS: run_http_starts(); break;
    case SLEEPERS: run_sleepers(); break;
    case MEMORY: run_memory(); break;
    default: run_load();
    }
    print_report();
    return 0;
}
