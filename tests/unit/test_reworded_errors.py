"""`Reworded`: an error in the place of another, with its text."""

from __future__ import annotations

import pytest

from fastrpc.errors import Reworded, UsageError


def test_an_error_of_the_system_is_raised_as_another_with_the_reason_alone() -> None:
    translated = Reworded(OSError, UsageError, "folder: ", ", sorry")
    with pytest.raises(UsageError, match=r"^folder: No such file or directory, sorry$") as raised, translated:
        open("/nowhere/at/all", encoding="utf-8").close()
    assert raised.value.__suppress_context__


def test_an_error_without_a_reason_keeps_its_text() -> None:
    translated = Reworded((KeyError, ValueError), UsageError, "--n: ")
    with pytest.raises(UsageError, match=r"^--n: not a number$"), translated:
        raise ValueError("not a number")


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(KeyError), Reworded(ValueError, UsageError):
        raise KeyError("a")
