"""The published contract of a toolset, and how a tool's descriptor is compared with it.

A toolset package may have a module ``_contract`` with ``CONTRACT``: the published tools, in order. For each:
``module`` (its file in the package), ``effect``, ``description``, ``parameters`` (name → type, required,
description) and, if there are any, ``extras`` (parameters added later, always optional). What is published is
never renamed, retyped or made stricter; `differences` reports violations. The contract is data of the
toolset; this module names no tool.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Contract = dict[str, dict[str, Any]]


def load_contract(toolset: str) -> Contract:
    """Return the contract of a toolset, empty if it has none."""
    companion = load_companion(toolset, "_contract")
    contract: Contract = getattr(companion, "CONTRACT", {})
    return contract


def load_companion(toolset: str, name: str) -> Any:
    """Return a module beside the tools of a toolset, or None."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_module(toolset) is None or find_spec(f"{toolset}.{name}") is None:
        return None
    return import_module(f"{toolset}.{name}")


def find_module(name: str) -> Any:
    """Return the spec of a package; None if it does not exist or is not a package."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    return spec if spec is not None and spec.submodule_search_locations is not None else None


def differences(published: dict[str, Any], descriptor: dict[str, Any], effect: str | None) -> list[str]:
    """Return how a tool's descriptor violates its contract, one sentence each."""
    found: list[str] = []
    text = descriptor.get("description", "")
    if text != published["description"] and not text.startswith(published["description"] + "\n"):
        found.append(f"description is {text!r}, published as {published['description']!r}")
    if effect != published["effect"]:
        found.append(f"effect is {effect!r}, published as {published['effect']!r}")
    schema = descriptor.get("inputSchema", {})
    if schema.get("type") != "object":
        found.append(f"inputSchema has the type {schema.get('type')!r}, not 'object'")
    properties = schema.get("properties", {})
    for name, expected in published["parameters"].items():
        found.extend(_parameter_differences(name, expected, properties.get(name)))
    required = [name for name, expected in published["parameters"].items() if expected["required"]]
    if sorted(schema.get("required", [])) != sorted(required):
        found.append(f"required is {schema.get('required', [])}, published as {required}")
    allowed = {*published["parameters"], *published.get("extras", ())}
    found.extend(f"parameter {name!r} was never published" for name in properties if name not in allowed)
    return found


def _parameter_differences(name: str, expected: dict[str, Any], shown: dict[str, Any] | None) -> list[str]:
    if shown is None:
        return [f"parameter {name!r} is missing"]
    return [
        f"{key} of {name!r} is {shown.get(key)!r}, published as {expected[key]!r}"
        for key in ("type", "description")
        if shown.get(key) != expected[key]
    ]
