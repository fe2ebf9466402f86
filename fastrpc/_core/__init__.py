"""The compiled core: framer, message, plan, encode, connection, and stream, the one that does I/O.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* what is JSON, what is a message, duplicates, depth, ids: `message.pyx`; the most common line:
  `fast_parser.h`, a line like the last one: `call_template.h`; texts: `string_decode.h`; numbers that
  simdjson does not support: `numbers.h`; the error text of a broken line: `fault.h`, its id:
  `broken_envelope.h`
* where a call runs, how it ends, time limits, cancellation: `connection.pyx` if it ends at once; one in
  flight: `InFlightCall` in `context.pyx`, a coroutine that the connection has begun: `pending.pyx`, any
  other: `engine/call.py`; on a thread: `engine/thread_pool.py`
* what a Context contains, and when it is filled in: `context.pyx`, `ConnectionDelegate.open_call`
* how a proxied call is forwarded as bytes: `forwarding.pyx`; behind a guard, if its gate allows the call by
  caller and tool alone (`call_gate.pyx`); which results are forwarded unchanged: `tool_result.h`; every
  other proxied request: `proxy/`
* what a client sends and how responses find their requests: `client_stream.pyx`; how a task waits for a
  tool call: `tool_call.pyx`; an answer with the form of an earlier one: `answer_parser.h`; versions, input
  requests: `client/session.py`; what a server sends, handlers: `client/server_messages.py`; its methods:
  `client/asynchronous.py`, without a loop `client/sync.py`
"""
