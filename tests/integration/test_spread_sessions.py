"""Sessions whose requests are spread over two hosts behind nginx, without affinity: the short form of the bar
S3. The long form is tests/soak/soak_sessions.py."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from support.spread_sessions import WORKERS, Spread
from support.waiting import eventually

pytestmark = pytest.mark.long
pytest_plugins = ["support.postgres"]


def test_sessions_over_two_hosts_and_a_rolling_restart(tmp_path: Path, postgres: Any) -> None:
    with Spread(tmp_path, postgres.url(postgres.new_database())) as spread:
        spread.open_sessions(100)
        with spread.load(listeners=5, updates_a_second=20) as load:
            eventually(
                lambda: load.calls > 1000 and len(load.revisions) > 40 and len(load.answered) == 2 * WORKERS
            )
        print(load)
        load.check()
        with spread.load(clients=2, listeners=5, updates_a_second=10) as load:
            spread.restart()
            before = load.calls
            eventually(lambda: load.calls > before + 300)
            time.sleep(1)
        print(load)
        load.check(restarted=True)
