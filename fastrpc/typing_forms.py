"""`Annotated` and `Literal` for modules whose import must cost little: ``typing`` takes 10 ms.

That is as long as all of fastrpc takes up to the first response.
Their results have the attributes by which `fastrpc.schema.annotations` recognises those of ``typing``. For
type checkers a module imports the originals:

    if TYPE_CHECKING:
        from typing import Annotated, Literal
    else:
        from fastrpc.typing_forms import Annotated, Literal

The other names of ``typing`` have no substitute here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GenericAlias: Any = type(list[int])


class Annotated:
    """``Annotated[type, …]``: a type with metadata (PEP 593)."""

    __slots__ = ("__metadata__", "__origin__")

    def __init__(self, origin: Any, metadata: tuple[Any, ...]) -> None:
        self.__origin__ = origin
        self.__metadata__ = metadata

    def __class_getitem__(cls, arguments: tuple[Any, ...]) -> Annotated:
        return cls(arguments[0], arguments[1:])


class Literal:
    """``Literal[…]``: one of some values (PEP 586)."""

    def __class_getitem__(cls, choices: Any) -> Any:
        return _GenericAlias(cls, choices)  # a tuple or one value; an alias can be in a union
