"""Parses JSON, TOML and YAML that people have written: configurations, front matter.

What is wrong is said by its place alone: a parser's own words may quote a secret. YAML has no aliases here,
since a few lines of them stand for gigabytes, and makes no objects.
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
    """A text is not what it ought to be."""


def parse(text: str, kind: str) -> Any:
    """Return what a text of a kind, json, toml or yaml, says. Raises Malformed."""
    try:
        return json.loads(text) if kind == "json" else _toml(text) if kind == "toml" else _yaml(text)
    except ImportError as error:
        raise Malformed(f'needs {error.name}: pip install "fastrpc-mcp[knowledge]"') from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:  # TOMLDecodeError ends with its place
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
