/* The load: passes of requests, timed and checked, and what is made of them. */
#ifndef CLIENT_LOAD_H
#define CLIENT_LOAD_H

#include "connection.h"

enum { FIRST_ID = 1000 };

/* Answers that came with one read: up to `end` bytes of the answers, at `moment`. */
struct arrival {
    size_t end;
    int64_t moment;
};

/* One pass: what is asked, what has come. */
struct pass {
    int64_t first_id;
    size_t calls;
    struct buffer requests, answers; /* an answer is a line */
    size_t *ends;                    /* of each request */
    int64_t *sent;                   /* when the write began that took its first byte */
    size_t *asked;                   /* HTTP: of each answer, the number of the request that it came to */
    bool *seen;
    struct arrival *arrivals;
    size_t arrival_count, arrival_capacity;
};

extern struct pass pass;

/* All answers up to here came by that moment. */
void record_arrival(int64_t moment);

/* Start the server, with its handshake where the wire has one. */
void begin_session(void);

/* One request again and again, over HTTP too: as many passes as the options want. */
void run_load(void);

/* Memory: what the server holds at the start, with its loop running, and behind so many calls. */
void run_memory(void);

/* Calls that sleep, and a probe beside them. */
void run_sleepers(void);

#endif
