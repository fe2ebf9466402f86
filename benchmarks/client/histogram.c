/*
 * Durations in ns. Below 1,024 each has a bin of its own; above, each power of two has 1,024 bins, so any
 * percentile is exact to 0.1 %, whatever the number of samples.
 */
#include "histogram.h"

enum { BINS = 1024, BIN_BITS = 10, POWERS = 34 };

static struct {
    uint64_t bins[POWERS][BINS]; /* row 0: width 1; row n: width 2^(n-1), from BINS * 2^(n-1) on */
    uint64_t count;
    int64_t sum, most;
} histogram;

void histogram_record(int64_t duration_ns) {
    uint64_t value = duration_ns > 0 ? (uint64_t)duration_ns : 0;
    unsigned row = 0;
    if (value >= BINS) {
        unsigned shift = 63 - (unsigned)__builtin_clzll(value) - BIN_BITS;
        row = shift + 1;
        value = (value >> shift) - BINS;
    }
    if (row >= POWERS) row = POWERS - 1, value = BINS - 1; /* more than two hours */
    histogram.bins[row][value]++;
    histogram.count++;
    histogram.sum += duration_ns;
    if (duration_ns > histogram.most) histogram.most = duration_ns;
}

uint64_t histogram_count(void) { return histogram.count; }

double histogram_mean_us(void) { return (double)histogram.sum / 1e3 / (double)histogram.count; }

double histogram_most_us(void) { return (double)histogram.most / 1e3; }

double histogram_percentile_us(double part) {
    uint64_t wanted = (uint64_t)(part * (double)histogram.count);
    uint64_t seen = 0;
    for (unsigned row = 0; row < POWERS; row++) {
        for (uint64_t bin = 0; bin < BINS; bin++) {
            seen += histogram.bins[row][bin];
            if (seen <= wanted) continue;
            if (row == 0) return (double)bin / 1e3;
            double width = (double)(1ull << (row - 1));
            double middle = ((double)(BINS + bin) + 0.5) * width / 1e3;
            return middle < histogram_most_us() ? middle : histogram_most_us();
        }
    }
    return histogram_most_us();
}
