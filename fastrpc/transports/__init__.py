"""Transports: each carries bytes between a client and the connection that it is given.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* the end of input, signals, descriptors: `stdio.py`; in a loop that the program runs:
  `serve_in_running_loop` there, for `compat/stdio.py`
* what a task or callback may not do to the event loop: `loop.py`; a call's own task: `contained` in
  `engine/call.py`
* what is traced: `trace.py`, over HTTP `transports/http/tracing.py`
"""
