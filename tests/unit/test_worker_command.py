"""The options of `fastrpc worker` and the settings that it shares with the servers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fastrpc.cli import worker
from fastrpc.errors import UsageError


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of `Server.run`, after the command."""
    given: dict[str, Any] = {}

    class Served:
        def run(self, **options: Any) -> None:
            given.update(options)

    monkeypatch.setattr(worker, "assemble", lambda *args, **options: Served())
    monkeypatch.setattr("fastrpc.tasks.fleet.WorkerTransport", lambda server, places: None)
    for name in ("FASTRPC_DRAIN_SECONDS", "FASTRPC_LOG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return given


@pytest.mark.parametrize(
    ("option", "setting", "seconds"),
    [
        ([], None, 30.0),
        ([], "7", 7.0),
        (["--drain-seconds", "2"], "7", 2.0),
        (["--drain-seconds", "0"], None, 0.0),
    ],
)
def test_the_option_comes_before_the_setting(
    option: list[str], setting: str | None, seconds: float, ran: dict[str, Any]
) -> None:
    if setting is not None:
        os.environ["FASTRPC_DRAIN_SECONDS"] = setting
    assert worker.main(["words.py", *option]) == 0
    assert ran["drain_seconds"] == seconds


def test_a_log_file_that_cannot_be_written_is_found_at_the_start(ran: dict[str, Any], tmp_path: Path) -> None:
    os.environ["FASTRPC_LOG_FILE"] = str(tmp_path / "missing" / "log")
    with pytest.raises(UsageError, match="--log-file"):
        worker.main(["words.py"])
    assert not ran
