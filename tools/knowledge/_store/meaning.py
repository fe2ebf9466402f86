"""What a question means, and among which texts what is nearest to it is looked for."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .readings import Texts


class Meaning(NamedTuple):
    """What a model says that a question means: its vector, an array of NumPy of length 1."""

    model: str
    vector: Any


class Place(NamedTuple):
    """Which vectors are compared: of which texts; the tables of those (`e`), conditions on them and their
    parameters."""

    texts: Texts
    tables: str
    conditions: Sequence[tuple[str, Mapping[str, object]]] = ()
