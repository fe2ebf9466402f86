"""How many schemas a validator looks at for one value: a server's schema may double with each `$ref`.

jsonschema-rs follows each reference each time, but for those that lead back to themselves: thirty types that
refer twice to the next take minutes, and hold the interpreter. `evaluations` counts in one pass. Pure.
"""

from __future__ import annotations

from urllib.parse import unquote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    _Found = tuple[int, list[Any] | None]

NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies")
"""Keywords whose members are schemas by name."""
NOT_EVALUATED = ("$defs", "definitions", "const", "default", "enum", "examples")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
ANCHORS = ("$anchor", "$dynamicAnchor")


def evaluations(schema: dict[str, Any], most: int) -> int | None:
    """Return how many schemas are evaluated at most, without references to a type within itself; more than
    `most` is `most` and one. None: a reference cannot be followed here."""
    places = _Places(schema)
    found = places.look_into(schema)
    counts: dict[int, int] = {id(schema): 0}  # 0 of those that are being counted
    waiting: list[tuple[Any, _Found, Iterator[Any]]] = [(schema, found, iter(found[1] or ()))]
    while waiting:
        node, (count, targets), others = waiting[-1]
        if targets is None:
            return None
        following = next((each for each in others if id(each) not in counts), None)
        if following is None:
            waiting.pop()
            counts[id(node)] = min(count + sum(counts[id(each)] for each in targets), most + 1)
        else:
            found = places.look_into(following)
            counts[id(following)] = 0
            waiting.append((following, found, iter(found[1] or ())))
    return counts[id(schema)]


class _Places:
    """Finds what references of a schema refer to."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._anchors: dict[str, Any] = {}
        self._has_others = False
        """Whether a part has an identifier, to which the references in it are relative."""
        waiting: list[Any] = [root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                self._has_others |= node is not root and isinstance(node.get("$id"), str)
                self._anchors.update(
                    (f"#{node[name]}", node) for name in ANCHORS if isinstance(node.get(name), str)
                )
                waiting += node.values()
            elif isinstance(node, list):
                waiting += node

    def look_into(self, schema: Any) -> _Found:
        """Return how many schemas one contains, and what their references refer to, None if unknown."""
        count = 0
        targets: list[Any] = []
        waiting: list[Any] = [schema]
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):
                waiting += node
            if not isinstance(node, dict):
                continue
            count += 1
            for key, value in node.items():
                if key in REFERENCES and isinstance(value, str):
                    target = self._target(value)
                    if target is None or self._has_others:
                        return count, None
                    targets.append(target)
                elif key in NAMED and isinstance(value, dict):
                    waiting += value.values()
                elif key not in NOT_EVALUATED:
                    waiting.append(value)
        return count, targets

    def _target(self, reference: str) -> Any:
        """Return what a reference refers to, None if it is not found here."""
        if not reference.startswith("#/"):
            return self._root if reference == "#" else self._anchors.get(reference)
        node: Any = self._root
        for step in unquote(reference[2:]).split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and step.isdecimal() and int(step[:9]) < len(node):
                node = node[int(step[:9])]
            elif isinstance(node, dict):
                node = node.get(step)
            else:
                return None
        return node
