"""A program, not a module: runs Python of a workflow's step, within limits.

It reads ``{"code", "input"}`` as JSON on descriptor 0, and answers with a line of JSON on descriptor 1:
``{"output"}`` or ``{"error"}``. The code reads `input`, and assigns its result to `output`. The modules that
it may import are imported before it runs. Then memory, processor time and written files are bounded, no
descriptor is free for a file or a socket, and no process and no thread can be made. On Linux only the system
calls for computing are left: the code cannot remove or rename a file, or send a signal to another process. If
the server runs as root, this process runs as the user nobody. It imports the standard library, and two files
of fastrpc.
"""

from __future__ import annotations

import base64
import collections
import csv
import datetime
import decimal
import difflib
import fractions
import functools
import hashlib
import html
import io
import itertools
import json
import math
import os
import random
import re
import resource
import statistics
import string
import sys
import textwrap
import traceback
import unicodedata
import urllib.parse
import uuid
import zoneinfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODULES = (
    base64, collections, csv, datetime, decimal, difflib, fractions, functools, hashlib, html, io, itertools,
    json, math, random, re, statistics, string, textwrap, unicodedata, urllib.parse, uuid, zoneinfo,
)  # fmt: skip
"""The modules that the code can import, since it can open no file."""
NOBODY = 65534
LONGEST_ERROR = 500
LARGEST = 1024 * 1024
SHOWN_AS = "<code>"


def be_nobody() -> None:
    """Give up root's rights, if the server runs as root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def answer(code: str, given: Any) -> dict[str, Any]:
    """Return the answer: the code's output or its error."""
    sys.path.clear()  # no file can be read there
    names = {"__name__": SHOWN_AS, "input": given}
    try:
        exec(compile(code, SHOWN_AS, "exec"), names)
        if "output" not in names:
            return {"error": "the code has no output: assign it to the name output"}
        size = len(json.dumps(names["output"], allow_nan=False))
        if size > LARGEST:
            return {"error": f"the output is {size:,} characters, more than {LARGEST:,}"}
        return {"output": names["output"]}
    except MemoryError:
        return {"error": "the code takes more memory than is allowed"}
    except BaseException as error:
        return {"error": described(error)}


def described(error: BaseException) -> str:
    """Return an error with the line of the code in which it was raised."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == SHOWN_AS]
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else lines[-1] if lines else None
    place = f"line {line}: " if line else "output: "
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{place}{type(error).__name__}: {text}"[:LONGEST_ERROR]


def main() -> None:
    """Arguments: bytes of memory, seconds."""
    from _process_limits import limit  # type: ignore[import-not-found]
    from _system_calls import confine  # type: ignore[import-not-found]

    with open(0, "rb", closefd=False) as file:
        order = json.load(file)
    answering = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    be_nobody()
    # Open descriptors stay open; the limit leaves no number for a new file or socket.
    limit(int(sys.argv[1]), int(sys.argv[2]), resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE)
    try:
        confine()
    except OSError as error:
        said = {"error": f"it is not run: this machine has no filter of system calls (seccomp): {error}"}
    else:
        said = answer(order["code"], order["input"])
    left = memoryview(json.dumps(said).encode())
    while left:
        left = left[os.write(answering, left) :]
    os._exit(0)
