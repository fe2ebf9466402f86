"""The client side of MCP over HTTP, in every version of the protocol.

Imported by the first client or proxy of a URL. The HTTP/1.1 is its own, on httptools: `connection` is one
connection, `pool` those to a server, `dialing` the way there, `wire` a request with credentials and errors.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* how a client's messages travel over HTTP: `transport.py`, which chooses the carrier: `stateless.py`,
  `session.py` or `sse.py`, which share `carrier.py`; a request with its credentials, redirects and errors:
  `wire.py`; HTTP/1.1 itself: `connection.py` on httptools, `pool.py`; names, TLS and the environment's
  proxies: `dialing.py`; the URL and the credentials: `address.py`; origins, and how a URL is shown:
  `client/urls.py`
"""
