/* The load: passes of requests, timed and checked, and what is made of them. */
#ifndef CLIENT_LOAD_H
#define CLIENT_LOAD_H

#include "connection.h"

enum { FIRST_ID = 1000 };

/* Start the server, with its handshake where the wire has one. */
void begin_session(void);

/* Echo, list, payload and shell: as many passes as the options want. */
void run_load(void);

/* Memory: what the server holds at the start, with its loop running, and behind so many calls. */
void run_memory(void);

/* Calls that sleep, and a probe beside them. */
void run_sleepers(void);

#endif
