"""Which of the programs that the contracts toolset runs are there, and what keeps one of them busy."""

from __future__ import annotations

import pytest
from fastrpc.tools.contracts import _programs
from fastrpc.tools.contracts._errors import EngineError

NESTED = "struct S0 { uint256 a; }" + "".join(
    f"struct S{n} {{ S{n - 1} a; S{n - 1} b; }}" for n in range(1, 25)
)
SLOW = f"""// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;
contract Slow {{
    {NESTED}
    S24 s;
    function f() external view returns (S24 memory) {{ return s; }}
}}
"""
"""Each struct holds two of the one before: the compiler is busy for minutes."""


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test where a program is missing; CI, which installs them, lets no such skip pass."""
    try:
        path = _programs.find(name)
        if path.endswith(".js"):
            _programs.find("node")
    except EngineError as error:
        return pytest.mark.skipif(True, reason=error.message)
    return pytest.mark.skipif(False, reason="")
