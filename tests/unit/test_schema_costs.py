"""Results are not validated by a schema that would take minutes: its references double with each type."""

from __future__ import annotations

from typing import Any

import pytest

from fastrpc import diagnostics
from fastrpc.client.output_schemas import _validator_of
from fastrpc.client.schema_costs import evaluations

MOST = 1_000_000


def doubling(count: int, keyword: str = "allOf") -> dict[str, Any]:
    refs = [[{"$ref": f"#/$defs/A{number + 1}"}] * 2 for number in range(count)]
    schemas: dict[str, Any] = {f"A{number}": {keyword: each} for number, each in enumerate(refs)}
    return {"$ref": "#/$defs/A0", "$defs": {**schemas, f"A{count}": {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "count"),
    [
        ({"type": "object"}, 1),
        ({"properties": {"a": {"type": "string"}, "$defs": {}}}, 3),
        ({"properties": {"a": {"$ref": "#"}}}, 2),
        ({"enum": [{"a": {}}], "$defs": {"a": {}}}, 1),
        ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"items": {}}}}, 3),
        ({"$ref": "#x", "$defs": {"a": {"$anchor": "x"}}}, 2),
        ({"dependencies": {"definitions": {"items": {}}}}, 3),
        (doubling(3), 30),
        (doubling(30), MOST + 1),
        (doubling(30, "anyOf"), MOST + 1),
        (doubling(20_000), MOST + 1),
        ({"$ref": "other"}, None),
        ({"$ref": "#/$defs/none"}, None),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "x", "$ref": "#/$defs/a"}}}, None),
    ],
)
def test_schemas_that_are_evaluated_are_counted(schema: dict[str, Any], count: int | None) -> None:
    assert evaluations(schema, MOST) == count


def test_a_schema_that_takes_too_long_is_not_used_and_that_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jsonschema_rs")
    lines: list[str] = []
    monkeypatch.setattr(diagnostics, "write", lambda at, text, error=None: lines.append(text))
    assert _validator_of("t", doubling(40)) is None
    assert _validator_of("t", {"$ref": "#far"}) is None
    assert _validator_of("t", doubling(10)).is_valid({})
    assert [line.partition("validated: its schema ")[2] for line in lines] == [
        "refers too often to its own parts",
        "has references that are not followed",
    ]
