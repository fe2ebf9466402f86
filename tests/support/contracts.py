"""Which of the programs that the contracts toolset runs are there, and what keeps one of them busy."""

from __future__ import annotations

import pytest
from fastrpc.tools.contracts import _programs
from fastrpc.tools.contracts._errors import EngineError

from support.skips import not_installed, not_prepared

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
    """Skip a test where a program is missing, or Node for a compiler that is npm's."""
    path = _path_of(name)
    if path is None:
        reason = not_installed("Node") if name == "node" else not_prepared(name)
    elif path.endswith(".js") and _path_of("node") is None:
        reason = not_installed("Node")
    else:
        reason = ""
    return pytest.mark.skipif(bool(reason), reason=reason)


def _path_of(name: str) -> str | None:
    try:
        return _programs.find(name)
    except EngineError:
        return None
