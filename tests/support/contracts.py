"""Which of the programs that the contracts toolset runs are there."""

from __future__ import annotations

import pytest
from fastrpc.tools.contracts import _programs
from fastrpc.tools.contracts._errors import EngineError


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test where a program is missing; CI, which installs them, lets no such skip pass."""
    try:
        path = _programs.find(name)
        if path.endswith(".js"):
            _programs.find("node")
    except EngineError as error:
        return pytest.mark.skipif(True, reason=error.message)
    return pytest.mark.skipif(False, reason="")
