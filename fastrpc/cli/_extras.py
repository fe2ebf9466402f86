"""Determines which extras are installed, and which extra a missing module belongs to.

`extras` reads the metadata of about twenty packages, which takes 10 ms; `needed` is a table.
"""

from __future__ import annotations

MODULES = {
    "schema": ("jsonschema_rs",),
    "http": ("httptools", "uvicorn", "httpx", "httpcore", "idna", "jwt", "cryptography"),
    "tools": ("ddgs", "lxml", "markdownify", "PIL", "playwright", "pypdf"),
    "guard": (
        "cryptography",
        "alembic",
        "re2",
        "rfc8785",
        "sqlalchemy",
        "tomli",
        "tree_sitter",
        "tree_sitter_bash",
    ),
    "knowledge": ("alembic", "sqlalchemy", "Stemmer", "tzdata", "yaml"),
    "documents": ("xberg",),
    "workflows": ("croniter", "dbos", "jinja2", "watchfiles"),
    "embeddings": ("numpy",),
    "local-embeddings": ("onnxruntime", "tokenizers"),
    "postgresql": ("psycopg",),
    "tasks": ("alembic", "sqlalchemy"),
    "oauth": ("keyring", "mcp"),
    "openapi": ("openapi_pydantic",),
    "dashboard": ("starlette", "jinja2"),
    "view": ("rich", "textual"),
    "contracts": ("eth_abi", "eth_hash"),
    "vyper": ("vyper",),
}
"""The modules of each extra."""


def needed(error: ImportError) -> str | None:
    """Return what is missing, and the extra that installs it; None for a module that is not in an extra."""
    module = (error.name or "").partition(".")[0]
    found = [extra for extra, modules in MODULES.items() if module in modules]
    if not found:
        return None
    importing = _importing(error)
    extra = next((extra for extra in found if extra in importing), found[0])
    return f"{module} is not installed: pip install 'fastrpc-mcp[{extra}]'"


def _importing(error: ImportError) -> set[str]:
    """Return the parts of the names of fastrpc's modules that were importing the missing one."""
    found: set[str] = set()
    traceback = error.__traceback__
    while traceback is not None:
        found.update(str(traceback.tb_frame.f_globals.get("__name__")).split("."))
        traceback = traceback.tb_next
    return found


def extras() -> dict[str, bool]:
    """Return for each extra whether all of its packages are installed."""
    from importlib.metadata import PackageNotFoundError, distribution, requires
    from re import match

    installed: dict[str, bool] = {}
    for requirement in requires("fastrpc-mcp") or ():
        found = match(r"([\w.-]+).*; extra == .([\w-]+)", requirement)
        if found is None or found[2] in ("all", "dev"):
            continue
        try:
            distribution(found[1])
            installed.setdefault(found[2], True)
        except PackageNotFoundError:
            installed[found[2]] = False
    return dict(sorted(installed.items()))
