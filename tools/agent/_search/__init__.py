"""The search engines behind WebSearch: a file an engine; what they share is in files that start with ``_``.

To add an engine, add a file here that sets ``ENGINE`` (see `_engine`) and a page of its shape under
``tests/fixtures/search/``. Nothing else names an engine, except `PUBLISHED`, which fixes the order of the
first eleven. Importing this imports nothing; an engine is imported by the first search that asks it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._engine import Engine

PUBLISHED = (
    "duckduckgo",
    "bing",
    "brave",
    "google",
    "mojeek",
    "yahoo",
    "yandex",
    "startpage",
    "qwant",
    "wikipedia",
    "searxng",
)


def names() -> list[str]:
    """Return the names of all engines: the published ones in their order, then others by name."""
    from pkgutil import iter_modules

    found = [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
    return sorted(found, key=lambda name: (PUBLISHED.index(name) if name in PUBLISHED else 99, name))


def load(name: str) -> Engine:
    """Return an engine. Raises whatever its import raises: a library may be missing."""
    from importlib import import_module

    engine: Engine = import_module(f"{__name__}.{name}").ENGINE
    return engine
