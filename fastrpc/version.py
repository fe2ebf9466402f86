"""The version of this package, as pyproject.toml has it too (a test compares them).

Written down rather than read from the installed metadata, since importing `importlib.metadata` costs more
than 10 ms. The versions of the protocol are in `fastrpc.protocol.versions`.
"""

from __future__ import annotations

__version__ = "0.1.0"
