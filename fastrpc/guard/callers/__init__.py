"""Callers: who calls, of which class, and by which right.

* `caller`: a `Caller`, as policies, quotas and audits see one.
* `tokens`: opaque tokens, made, rotated and revoked in the guard's database.
* `directory`: all live tokens in memory, at most half a second old; `http_source` hands them to the
  authenticator over HTTP, `stdio` says who calls over stdio.
* `claims`: callers with an authorization server's token, whose class its claims say.

Importing this package imports none of them.
"""
