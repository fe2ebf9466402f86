"""Normal forms are those of Python, also of texts that take Python quadratic time."""

from __future__ import annotations

import random
from time import process_time
from unicodedata import normalize

import pytest

from fastrpc.guard.approvals.display import visible
from fastrpc.unicode_forms import normal_form

LETTERS = "ae\u00e9\u0344\u0f73\u0f81\u0300\u0315\u0327\u0301\u05b0\u3099\uff9e\uff9f\uac00\u1100\u1161\u00a8"


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("seed", range(8))
def test_a_normal_form_is_pythons(form: str, seed: int) -> None:
    chance = random.Random(seed)
    letters = chance.sample(LETTERS, 6)
    text = "".join("e" + "".join(chance.choices(letters, k=chance.choice((3, 700)))) for _ in range(5))
    assert normal_form(form, text) == normalize(form, text)  # type: ignore[arg-type]


@pytest.mark.alone
@pytest.mark.parametrize("pair", ["\u0315\u0300", "\u0f73", "\u0344\u0327"])
def test_marks_in_the_wrong_order_take_linear_time(pair: str) -> None:
    def seconds(size: int) -> float:
        begun = process_time()
        visible("a" + pair * size)
        return process_time() - begun

    assert seconds(80_000) < 3  # 0.2; by `normalize` a minute and more
