"""The version of this package, the same as in pyproject.toml (a test compares them).

It is a literal, because importing `importlib.metadata` to read the installed metadata takes more than 10 ms.
The versions of the protocol are in `fastrpc.protocol.versions`.
"""

from __future__ import annotations

__version__ = "0.1.0"
