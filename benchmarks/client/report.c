/* One flat JSON object, filled while the run goes on and printed when it has ended well. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

#include "connection.h"
#include "histogram.h"

static yyjson_mut_doc *report;

static yyjson_mut_val *root(void) {
    if (!report) {
        report = yyjson_mut_doc_new(NULL);
        yyjson_mut_doc_set_root(report, yyjson_mut_obj(report));
    }
    return yyjson_mut_doc_get_root(report);
}

void put_real(const char *name, double value) {
    yyjson_mut_val *object = root();
    yyjson_mut_obj_add_real(report, object, name, value);
}

void put_integer(const char *name, int64_t value) {
    yyjson_mut_val *object = root();
    yyjson_mut_obj_add_sint(report, object, name, value);
}

void put_text(const char *name, const char *text) {
    yyjson_mut_val *object = root();
    yyjson_mut_obj_add_str(report, object, name, text);
}

void put_percentiles(double scale) {
    put_real("p50", histogram_percentile_us(0.50) * scale);
    put_real("p90", histogram_percentile_us(0.90) * scale);
    put_real("p99", histogram_percentile_us(0.99) * scale);
    put_real("p99_9", histogram_percentile_us(0.999) * scale);
    put_real("max", histogram_most_us() * scale);
    put_real("mean", histogram_mean_us() * scale);
}

void put_usage(const struct rusage *usage, long peak_kb, int exit_code) {
    put_integer("peak_rss_kb", peak_kb ? peak_kb : usage->ru_maxrss);
    put_real("server_user_seconds", (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec / 1e6);
    put_real("server_system_seconds", (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec / 1e6);
    put_integer("exit_code", exit_code);
}

void print_report(void) {
    char *json = yyjson_mut_write(report, 0, NULL);
    if (!json) void_run("the report cannot be written");
    puts(json);
    free(json);
    yyjson_mut_doc_free(report);
}
