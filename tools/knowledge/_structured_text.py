"""Parses JSON, TOML and YAML that people have written: configurations, front matter.

An error gives only the position: a parser's own message may quote a secret. YAML aliases are refused, since a
few lines of them can expand to gigabytes, and YAML makes no objects.
"""

from __future__ import annotations

import json
import re
import sys

from fastrpc import FastrpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Malformed(FastrpcError):
    """A text is not valid."""


def parse(text: str, kind: str) -> Any:
    """Return the value of a text of a kind: json, toml or yaml. Raises Malformed."""
    try:
        return json.loads(text) if kind == "json" else _toml(text) if kind == "toml" else _yaml(text)
    except ImportError as error:
        raise Malformed(f'needs {error.name}: pip install "fastrpc-mcp[knowledge]"') from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:  # TOMLDecodeError's message ends with the position
        found = re.search(r"line \d+, column \d+", str(error))
        place = found[0] if found else "its values"
    raise Malformed(f"expected {kind.upper()}, broken at {place}")


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found]
    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    import yaml

    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise ValueError("an alias")
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"line {mark.line + 1}, column {mark.column + 1}" if mark else "") from None
