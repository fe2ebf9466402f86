"""datetime.now as it is served: the time with its offset and weekday, and what is said of an unknown zone."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from support.guarded_folder import variables

from fastrpc import Client

SERVE = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.knowledge"]


def test_the_time_has_the_offset_of_its_zone_and_its_weekday(tmp_path: Path) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        for arguments, offset in (({}, 0), ({"timezone": "Asia/Tokyo"}, 9)):
            shown = client.call_tool("datetime.now", arguments).structured
            moment = datetime.fromisoformat(shown["time"])
            assert moment.utcoffset() == timedelta(hours=offset)
            assert shown["weekday"] == f"{moment:%A}"


@pytest.mark.parametrize("zone", ["Mars/Base", "../etc/passwd", "Europe", ""])
def test_an_unknown_time_zone_is_an_error_that_names_it(tmp_path: Path, zone: str) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        done = client.call_tool("datetime.now", {"timezone": zone})
    assert done.is_error
    assert "timezone: expected an IANA name" in done.text
