"""Connections to PostgreSQL on which each statement ends after `STATEMENT_SECONDS`.

TCP's own limits (`urls.WAITING`) are for a machine that is gone. Where the server alone is stopped or hangs,
its machine still acknowledges; and a local socket has no such limits.
"""

from __future__ import annotations

from time import monotonic

import psycopg
from sqlalchemy import event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from sqlalchemy.engine import Engine

STATEMENT_SECONDS = 60.0


class _TimedConnection(psycopg.Connection[object]):
    """A connection that is closed when a statement takes too long."""

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
        return super().wait(self._until(gen, monotonic() + STATEMENT_SECONDS), *arguments, **options)

    def _until(self, gen: Generator[Any, Any, Any], end: float) -> Generator[Any, Any, Any]:
        """What `gen` does, which is told every tenth of a second that nothing has come."""
        try:
            wanted = next(gen)
            while monotonic() < end:
                wanted = gen.send((yield wanted))
        except StopIteration as done:
            return done.value
        self.pgconn.finish()  # else the rollback waits as long again
        raise psycopg.OperationalError(f"the server has not answered within {STATEMENT_SECONDS:g} s")


def limit_statements(engine: Engine) -> None:
    """Have an engine make connections whose statements end."""

    def connect(dialect: Any, record: Any, arguments: list[Any], parameters: dict[str, Any]) -> Any:
        return _TimedConnection.connect(*arguments, **parameters)

    event.listen(engine, "do_connect", connect)
