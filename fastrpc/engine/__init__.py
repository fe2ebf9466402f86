"""What happens to a request between the connection that has read it and the bytes of its answer.

The engine knows ports, not features: what a server can do is handed to it as one table (`fastrpc.methods`),
and what a handler may do with its client as functions beside it. Nothing here does I/O.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* what a server does besides calls: `monitor.py`, which `server_monitors.py` finds, `lifespan.py`, and
  `Server.set_note`, `log`, `busy`; a toolset uses them: docs/toolsets.md
* what a running call sends before its result: `outbound_channel.py`; what a connection sends besides
  answers: `outbound.py`, when something has changed: `change_notifications.py`
* how results, errors and the ends of calls become answers and records: `responses.py` for calls of Python;
  for those of the compiled connection `connection_delegate.py`
* which requests are in flight, and how they are cancelled: `requests_in_flight.py`
* how large a batch may be, and how its messages take turns with others: `batches.py`
* what is answered if code raises that should never raise; after that, the next message is read:
  `failed_lines.py`; of a call in flight: `failed` in `_core/pending.pyx`; a client's and a proxy's:
  `pass_on` in `_core/client_stream.pyx`, `_core/forwarding.pyx`
* how many calls may be in flight, and which call begins when another one ends: `admission.py`
* what a return value becomes: `results.py`; its JSON: `json_encoding.py`, of plain values
  `_core/encoder.pyx` with `json_writer.h` and `string_encode.h`; whether it conforms to the output schema:
  `output_validation.py`
"""
