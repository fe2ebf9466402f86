"""Stands for a name of an original that fastrpc does not have, in a file that may never use it.

Under `fastrpc swap --run` such a name can be imported, stand in annotations and be a base class: servers
import what their other transports need. Calling it, making an instance or reading an attribute raises
NotOffered, which names the alternative. ``fastrpc swap`` tells of these names before.
"""

from __future__ import annotations

from fastrpc.compat.errors import NotOffered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Unavailable(type):
    """The class of the classes that stand for missing names. To ask one for a name of the language's own is
    no use of it: pydantic, `inspect` and decorators do so."""

    complaint: str

    def __call__(cls, *values: Any, **named: Any) -> Any:
        raise NotOffered(cls.complaint)

    def __getattr__(cls, name: str) -> Any:
        if name == "__get_pydantic_core_schema__":
            return _of_anything  # it is the type of a field
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotOffered(cls.complaint)

    def __getitem__(cls, item: object) -> Any:
        return cls  # in an annotation

    def __repr__(cls) -> str:
        return f"<unavailable {cls.__name__}>"


def _of_anything(source: Any, handler: Any) -> Any:
    from pydantic_core import core_schema

    return core_schema.any_schema()


def unavailable(module: str, name: str, complaint: str) -> Any:
    """Return what stands for a name of a module. Using it raises NotOffered with the complaint."""
    return _Unavailable(name, (), {"__module__": module, "complaint": complaint, "__doc__": complaint})
