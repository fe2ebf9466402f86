"""Callers: who calls, of which class, and by which right.

* `caller`: a `Caller`, as policies, quotas and audits see it.
* `tokens`: opaque tokens, made, rotated and revoked in the guard's database.
* `directory`: all live tokens in memory, at most half a second old; `http_source` passes them to the
  authenticator over HTTP, `stdio` determines the caller over stdio.
* `claims`: callers with an authorization server's token, whose claims determine the class.

Importing this package imports none of them.
"""
