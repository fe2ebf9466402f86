"""pydantic's error for arguments that do not match a tool: for programs that read the cause of a ToolError,
as some that override ``call_tool`` of the official SDK do.
"""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.errors import ArgumentError

_PROBLEM = re.compile(r"""(?:^|; )(?:\$\.)?([A-Za-z_]\w*)((?:\.\w+|\[\d+\]|\["[^"]*"\])*): """)
_STEP = re.compile(r"""\.(\w+)|\["([^"]*)"\]|\[(\d+)\]""")


def as_validation_error(error: ArgumentError, tool: str) -> Exception:
    """Return pydantic's error with the same problems, by field; the given one if the program does without
    pydantic, or the text names no field."""
    text = str(error)
    starts = [*_PROBLEM.finditer(text)]
    if not starts or "pydantic" not in sys.modules:
        return error
    from pydantic_core import PydanticCustomError, ValidationError

    ends = [each.start() for each in starts[1:]] + [len(text)]
    problems: list[Any] = []
    for start, end in zip(starts, ends, strict=True):
        steps = [dotted or quoted or int(number) for dotted, quoted, number in _STEP.findall(start[2])]
        said = {"problem": text[start.end() : end]}
        kind = PydanticCustomError("invalid_argument", "{problem}", said)
        problems.append({"type": kind, "loc": (start[1], *steps), "input": None})
    return ValidationError.from_exception_data(f"{tool}Arguments", problems)
