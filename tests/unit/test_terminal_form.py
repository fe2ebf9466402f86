"""What a user types into a form on the terminal becomes the value of its field."""

from __future__ import annotations

from typing import Any

import pytest

from fastrpc.terminal.line_form import Unfit, value_of


@pytest.mark.parametrize("pattern", ["(a+)+$", "(", "^[0-9]+$"], ids=["endless", "broken", "another"])
def test_an_expression_of_the_server_is_left_to_the_server(pattern: str) -> None:
    field = {"type": "string", "pattern": pattern}
    assert value_of("name", field, [], "a" * 60 + "!") == "a" * 60 + "!"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ({"type": "string", "maxLength": 3, "pattern": "("}, "long"),
        ({"type": "integer", "maximum": 3}, "4"),
        ({"type": "boolean"}, "perhaps"),
    ],
)
def test_what_does_not_fit_its_field_is_refused(field: dict[str, Any], text: str) -> None:
    with pytest.raises(Unfit):
        value_of("name", field, [], text)
