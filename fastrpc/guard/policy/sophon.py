"""Reads Sophon's ``mcp-server.json``: ``enabled``, ``transports``, ``auth.tokens``, ``expose``.

Its lists of tools and resources apply to everyone; its tokens are callers of the class ``default``, by their
ids. Sophon's other guarantees apply: a caller has 60 requests of any kind a minute, each request is audited,
and what the lists lack is refused with -32000. Everything else is as in an empty ``guard.toml``.
"""

from __future__ import annotations

from fastrpc.errors import Reworded
from fastrpc.guard.policy import sections
from fastrpc.guard.policy.config import GuardConfig
from fastrpc.guard.policy.references import References
from fastrpc.guard.policy.sections import GuardConfigError, Section

DEFAULTS: dict[str, object] = {"rate": "60/minute", "requests": "all", "hide": False}
OVER_HTTP = ("sse", "streamableHttp")


def config_of(file: str, source: str, version: str, references: References) -> GuardConfig:
    """Return the configuration of a file. Raises GuardConfigError."""
    import json

    with Reworded(ValueError, GuardConfigError, f"{file}: not JSON: "):
        value = json.loads(source)
    root = Section(file, value, {})
    enabled = root.take("enabled", sections.flag, True)
    expose, auth = root.table("expose"), root.table("auth")
    names = {key: expose.take(key, sections.texts) for key in ("tools", "resources", "prompts")}
    expose.end()
    table: dict[str, object] = {
        "expose": {key: list(found) for key, found in names.items() if found is not None},
        "defaults": DEFAULTS,
        "tokens": auth.take("tokens", list, []),
    }
    auth.end()
    transports = {"stdio": enabled, "http": enabled}
    given = root.section("transports")
    if given is not None:
        states = {name: _is_enabled(given.table(name)) for name in ("stdio", *OVER_HTTP)}
        given.end()
        transports = {"stdio": states["stdio"], "http": any(states[name] for name in OVER_HTTP)}
        transports = {name: enabled and state for name, state in transports.items()}
    root.end()
    config = GuardConfig(Section(file, table, {}), version, references)
    config.transports = transports
    return config


def _is_enabled(section: Section) -> bool:
    found = bool(section.take("enabled", sections.flag, False))
    section.take("path", sections.text)
    section.end()
    return found
