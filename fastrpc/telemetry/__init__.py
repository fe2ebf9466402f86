"""Observers, statistics and the access log: they drain the recorder, off the path of calls. Nothing here is
imported until one of them is used.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* which statistics of calls are counted and printed: `statistics.py`; how SIGUSR1 reaches it:
  `_core/signal_pipe.pyx`
"""
