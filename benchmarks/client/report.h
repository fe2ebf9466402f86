/* The JSON object that is printed at the end. */
#ifndef CLIENT_REPORT_H
#define CLIENT_REPORT_H

#include <stdint.h>
#include <sys/resource.h>

void put_real(const char *name, double value);
void put_integer(const char *name, int64_t value);
void put_text(const char *name, const char *text); /* kept by the caller */

/* What the histogram holds, in microseconds times `scale`. */
void put_percentiles(double scale);

/* The server's CPU time, its peak of memory (0: what wait4 says) and its exit code. */
void put_usage(const struct rusage *usage, long peak_kb, int exit_code);

void print_report(void);

#endif
