"""A dashboard that has an audit log, in the test's own process: the fixtures `folder`, where the log is, and
`dashboard`. With `counting_folder` in the place of `folder` each page of figures waits until all is counted.

A test's file takes them by name, `dashboard = logged_dashboard.dashboard`, in the place of those of the
plugin `support.dashboard`."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.pages import figures
from fastrpc.dashboard.view import AuditSource, Sources
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    return str(tmp_path / "audit")


@pytest.fixture
def counting_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(figures, "FRESH_SECONDS", -1.0)  # each page counts what is new
    monkeypatch.setattr(figures, "WAIT_SECONDS", 60.0)
    return str(tmp_path / "audit")


@pytest.fixture
def dashboard(database: Database, folder: str) -> Dashboard:
    return Dashboard(Sources(lambda: database, "shop", log=AuditSource(folder)), AccessRules(None))
