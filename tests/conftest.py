"""What every test may use: the helpers beside this file by their bare names, and the test data.

That this file exists puts `tests/` on the import path, so a test writes `from stdio import serve`.
"""

from __future__ import annotations

import os

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.environ.get("FASTRPC_DATA_DIR") or os.path.join(os.path.dirname(REPOSITORY), "shared", "data")


@pytest.fixture(scope="session")
def data_folder() -> str:
    """The folder with JSONTestSuite, JSON-Schema-Test-Suite and the MCP schemas."""
    if not os.path.isdir(DATA):
        pytest.skip(f"no test data in {DATA}; FASTRPC_DATA_DIR names another folder")
    return DATA
