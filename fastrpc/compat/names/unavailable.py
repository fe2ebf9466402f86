"""Stands for a name of an original that fastrpc does not have, in a file that may never use it.

Under `fastrpc swap --run` such a name can be imported, be used in annotations and be a base class: servers
import what their other transports need. Calling it, making an instance or reading an attribute raises
NotOffered, which names the alternative. ``fastrpc swap`` reports these names before. A program may put a
method of its own around one by which such a class is entered and left: nothing calls it, which is logged.
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc.compat.errors import NotOffered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_ENTERED_BY = ("__aenter__", "__aexit__", "__enter__", "__exit__")


class _Unavailable(type):
    """The class of the classes in the place of missing names. To ask one for a name of the language's own is
    no use of it: pydantic, `inspect` and decorators do so."""

    complaint: str

    def __call__(cls, *values: Any, **named: Any) -> Any:
        raise NotOffered(cls.complaint)

    def __getattr__(cls, name: str) -> Any:
        if name == "__get_pydantic_core_schema__":
            return _of_anything  # it is the type of a field
        if name in _ENTERED_BY:
            return cls.__call__
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotOffered(cls.complaint)

    def __setattr__(cls, name: str, value: Any) -> None:
        if "complaint" in vars(cls):  # no class of the program that is derived from one
            diagnostics.write("warning", f"{cls.__name__}.{name}: set, without effect: {cls.complaint}")
        super().__setattr__(name, value)

    def __getitem__(cls, item: object) -> Any:
        return cls  # in an annotation

    def __repr__(cls) -> str:
        return f"<unavailable {cls.__name__}>"


def _of_anything(source: Any, handler: Any) -> Any:
    from pydantic_core import core_schema

    return core_schema.any_schema()


def unavailable(module: str, name: str, complaint: str) -> Any:
    """Return a class in the place of a name of a module. Using it raises NotOffered with the complaint."""
    return _Unavailable(name, (), {"__module__": module, "complaint": complaint, "__doc__": complaint})
