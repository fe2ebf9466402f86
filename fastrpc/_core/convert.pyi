from collections.abc import Callable
from typing import Any

def extend_integers(
    accepted: list[int], values: list[Any], accept: Callable[[Any, bool], int], lenient: bool
) -> None: ...
def extend_reals(
    accepted: list[float], values: list[Any], accept: Callable[[Any, bool], float], lenient: bool
) -> None: ...
