"""The agent's tools as their marks say, for tests that would else count them: a new tool is one file."""

from __future__ import annotations

from fastrpc.cli._assemble import load_toolset

EFFECTS = {tool.name: tool.effect for tool in load_toolset("fastrpc.tools.agent")}
"""The effect of each, in their order."""
