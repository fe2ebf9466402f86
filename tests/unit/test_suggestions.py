"""A misspelt name is compared with few of many, and still finds the one that is meant."""

from __future__ import annotations

import difflib

import pytest

from fastrpc.errors import LONGEST_COMPARED, MOST_COMPARED, suggest


@pytest.mark.parametrize("count", [10, 5000])
def test_the_name_that_is_meant_is_found_among_many(count: int) -> None:
    names = [f"tool_of_server_{number}" for number in range(count)]
    assert suggest("Read_Fille", [*names, "read_file"]) == ["read_file"]
    assert suggest("read_file", [*names, "read_file"]) == []


def test_few_names_are_compared_and_not_all_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def note(name: str, names: list[str], most: int) -> list[str]:
        compared.extend([name, *names])
        return []

    monkeypatch.setattr(difflib, "get_close_matches", note)
    suggest("ba" * 1000, ["ab" * 1000 + str(number) for number in range(200)])
    suggest("ba" * 1000, [f"{number}" + "ab" * 1000 for number in range(2000)])
    assert len(compared) <= 2 * (MOST_COMPARED + 1)
    assert {len(each) for each in compared} == {LONGEST_COMPARED}
