/* Durations, counted so that any percentile is exact to 0.1 % whatever the number of samples. */
#ifndef CLIENT_HISTOGRAM_H
#define CLIENT_HISTOGRAM_H

#include <stdint.h>

void histogram_record(int64_t duration_ns);
uint64_t histogram_count(void);
double histogram_mean_us(void);
double histogram_most_us(void);

/* The duration below which `part` (0 to 1) of them lie. */
double histogram_percentile_us(double part);

#endif
