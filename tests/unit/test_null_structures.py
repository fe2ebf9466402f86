"""Structured content that is null: a value, where the output schema allows it."""

from __future__ import annotations

import pytest

from fastrpc._core.call_result import CallResult
from fastrpc.client.output_schemas import OutputSchemas
from fastrpc.client.typed_values import value_of
from fastrpc.errors import InvalidAnswer

TEXT = [{"type": "text", "text": '{"from": "text"}'}]


def test_null_is_held_against_the_schema_and_only_a_missing_one_is_missing() -> None:
    pytest.importorskip("jsonschema_rs", reason="the extra schema is not installed")
    schemas = OutputSchemas()
    schemas.learn({"name": "may", "outputSchema": {"type": ["object", "null"]}})
    schemas.learn({"name": "must", "outputSchema": {"type": "object"}})
    schemas.check("may", CallResult({"content": TEXT, "structuredContent": None}))
    with pytest.raises(InvalidAnswer, match="missing"):
        schemas.check("may", CallResult({"content": TEXT}))
    with pytest.raises(InvalidAnswer, match="null"):
        schemas.check("must", CallResult({"content": TEXT, "structuredContent": None}))


def test_a_typed_value_is_the_null_and_not_the_text() -> None:
    result = CallResult({"content": TEXT, "structuredContent": None})
    assert value_of(result, dict | None) is None
    assert value_of(CallResult({"content": TEXT}), dict) == {"from": "text"}
