from collections.abc import Callable
from types import ModuleType
from typing import Any

def extend_integers(
    accepted: list[int], values: list[Any], accept: Callable[[Any, bool], int], lenient: bool
) -> None: ...
def extend_reals(
    accepted: list[float], values: list[Any], accept: Callable[[Any, bool], float], lenient: bool
) -> None: ...

class Binder:
    """Binds the arguments of a signature, leniently (`Signature.bind`)."""

    def __init__(
        self, parameters: tuple[Any, ...], missing: Callable[[str, dict[str, Any]], str], words: ModuleType
    ) -> None: ...
    def bind(self, arguments: dict[str, Any]) -> list[Any] | str:
        """Return the values of all parameters in order, a list; or a str that says what does not fit."""
