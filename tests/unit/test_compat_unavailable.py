"""What represents a missing name under `fastrpc swap --run`: it can be named, and not be used."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel, ConfigDict

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.names.unavailable import unavailable
from fastrpc.swap.import_hook import ServedModule

Missing: Any = unavailable("fastmcp.x", "Missing", "fastrpc has no Missing; write another")


def test_it_can_be_in_annotations_and_be_a_base_class() -> None:
    class Own(Missing):  # type: ignore[misc]
        pass

    assert (Missing | None) is not None
    assert Missing[int, str] is Missing
    assert not isinstance(5, Missing)
    assert repr(Missing) == "<unavailable Missing>"
    with pytest.raises(NotOffered, match="write another"):
        Own()


@pytest.mark.parametrize("use", [lambda: Missing(), lambda: Missing(a=1), lambda: Missing.member])
def test_using_it_names_the_alternative(use: Any) -> None:
    with pytest.raises(NotOffered, match="fastrpc has no Missing; write another"):
        use()


def test_a_known_missing_name_of_a_served_module_can_be_imported_and_an_unknown_one_not() -> None:
    module = ServedModule("fastmcp.server.auth.jwt_issuer")
    with pytest.raises(NotOffered, match="JWTIssuer of fastmcp"):
        module.JWTIssuer()
    with pytest.raises(AttributeError, match="fastrpc has no Surprise"):
        ServedModule("fastmcp").Surprise  # noqa: B018


def test_names_of_the_language_are_not_counted_as_its_use() -> None:
    class Model(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=False)
        found: Missing | None = None  # type: ignore[valid-type]

    assert Model(found=5).found == 5
    assert Missing.__name__ == "Missing"
    assert Missing.__doc__.endswith("write another")
    assert inspect.signature(Missing) is not None
    assert not hasattr(Missing, "__wrapped__")
    assert get_type_hints(Missing) == {}


def test_a_method_by_which_it_is_entered_can_be_replaced_which_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand_in: Any = unavailable("fastmcp.x", "Session", "fastrpc has no Session; write another")
    entering = stand_in.__aenter__
    with pytest.raises(NotOffered, match="write another"):
        entering(stand_in)
    stand_in.__aenter__ = entering
    assert "Session.__aenter__: set, without effect: fastrpc has no Session" in caplog.text

    class Own(stand_in):  # type: ignore[misc]
        pass

    Own.member = 1
    assert "Own.member" not in caplog.text
