"""What several hosts that serve the same server share, in one PostgreSQL database: `FASTRPC_SHARED`.

Changes of lists and resources are notified to the processes of all hosts. What a session has beyond its
sealed id (log level, subscriptions, its end by the client) are rows, and so are, for a moment, messages that
another process may need. No request waits for the database, except at most `WAIT_SECONDS` one that begins to
serve a session of another process, sets the session's state, or ends it.

Where a rule is:

* the thread that writes and reads, and what happens while the database is away: `store.py`
* what processes notify each other of, and how it is checked: `payloads.py`
* rows: `rows.py`, `schema.py`, `migrations`
"""
