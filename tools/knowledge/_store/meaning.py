"""The meaning of a question, and the texts that are compared with it."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .readings import Texts


class Meaning(NamedTuple):
    """The meaning of a question according to a model: its vector, an array of NumPy of length 1."""

    model: str
    vector: Any


class Place(NamedTuple):
    """The vectors to compare: the kind of texts; their tables (`e`), conditions on them and their
    parameters."""

    texts: Texts
    tables: str
    conditions: Sequence[tuple[str, Mapping[str, object]]] = ()
