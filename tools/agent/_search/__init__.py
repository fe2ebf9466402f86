"""The search engines of WebSearch, one file for each; modules that they share start with ``_``.

To add an engine, add a file here that sets ``ENGINE`` (see `_engine`) and a sample page under
``tests/fixtures/search/``. Nothing else names an engine, except `PUBLISHED`, which fixes the order of the
first eleven. Importing this imports nothing; the first search that asks an engine imports it.
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
    """Return an engine. Raises any exception of its import: a library may be missing."""
    from importlib import import_module

    engine: Engine = import_module(f"{__name__}.{name}").ENGINE
    return engine
