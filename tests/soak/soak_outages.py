"""The bar S4: PostgreSQL stops for 5 s and is started again, again and again, for FASTRPC_SOAK_SECONDS (60).

Sessions over two hosts behind nginx, as in `soak_sessions.py`: no answer may be wrong or late, and each
listener hears of every update, or that it may have missed some. What one stop does to limits and to tasks is
in `tests/integration/test_guard_hosts.py`. `make soak` runs each file `tests/soak/soak_*.py` as tests.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from support.spread_sessions import Spread

pytest_plugins = ["support.postgres"]
SECONDS = float(os.environ.get("FASTRPC_SOAK_SECONDS", "60"))
AWAY_SECONDS = 5.0
BACK_SECONDS = 12.0
"""Longer than the longest pause between two attempts to connect."""
SESSIONS = 200
LISTENERS = 5


@pytest.mark.timeout(0)
def test_sessions_go_on_while_the_database_stops_again_and_again(tmp_path: Path, postgres: Any) -> None:
    stops = 0
    with Spread(tmp_path, postgres.url(postgres.new_database())) as spread:
        spread.open_sessions(SESSIONS)
        with spread.load(listeners=LISTENERS, updates_a_second=10) as load:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end or not stops:
                time.sleep(BACK_SECONDS)
                postgres.stop()
                time.sleep(AWAY_SECONDS)
                postgres.start()
                stops += 1
            time.sleep(BACK_SECONDS)
        print(f"{stops} stops: {load}")
        load.check(store_away=True)
        assert load.slowest <= AWAY_SECONDS
