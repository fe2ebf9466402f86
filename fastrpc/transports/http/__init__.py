"""MCP over HTTP. `app` is the ASGI application with its routes, `server` serves it with uvicorn on sockets,
`run` starts it from its settings; the other files are parts of these. Not imported by a server over standard
input and output.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* which function serves an HTTP request, and whether it is stateless or in a session: `app.py`; requests of
  the session wire: `session_wire.py`; messages before a response, and event streams: `responses.py`; idle
  connections: `exchange.py`
* access control over HTTP: `guard.py` (Host, Origin), `auth.py` (tokens), `issuers.py` (authorization
  servers; their keys: `signing_keys.py`), both implement `token_source.py`; the token as a call sees it:
  `access_token.py`
* the limits of a connection over HTTP: `limits.py`, `bounded_connection.py`; when they are checked:
  `monitor.py`
* which connection is closed for a new one: `connections.py`; during a TLS handshake: `handshakes.py`
* the fast path over HTTP: `hot_path.py`; what it remembers: `remembered.py`; for which heads: `heads.py`;
  plain calls of all callers: `shared.py`; a call that waits: `pending_response.py`
* an application for servers of other frameworks: other paths, no sessions, only JSON: `custom_app.py`; the
  request that a call came with: `current_request.py`
* what is logged about a refused request, and how much of it: `refusals.py`; how a record is written, and
  where: `diagnostics.py`
* what is recorded about each request over HTTP: `access.py`; its lines: `_core/access_buffer.pyx`; the
  thread that writes them: `telemetry/access_log.py`
* sessions, and which streams can be resumed: `sessions.py`, `streams.py`
* the life of a process that serves over HTTP, from start to end: `process.py`
* several workers: `workers.py`; which worker has a session: `session_ids.py`, `session_router.py`
* sessions that several processes serve: what their ids contain: `session_seals.py`; who signs them:
  `signed_texts.py`; what processes tell each other about them: `session_sharing.py`,
  between hosts: `stored_sessions.py`
"""
