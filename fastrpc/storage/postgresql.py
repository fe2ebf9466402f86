"""Connections to PostgreSQL on which each statement ends after `STATEMENT_SECONDS`.

TCP's limits (`urls.WAITING`) detect a machine that has failed. If only the server is stopped or hangs, the
kernel of its machine still acknowledges; and a Unix socket has no such limits.
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
        """Run `gen` until `end`. psycopg resumes it every tenth of a second, even if no data has arrived."""
        try:
            wanted = next(gen)
            while monotonic() < end:
                wanted = gen.send((yield wanted))
        except StopIteration as done:
            return done.value
        self.pgconn.finish()  # otherwise the rollback would wait for as long again
        raise psycopg.OperationalError(f"the server has not answered within {STATEMENT_SECONDS:g} s")


def limit_statements(engine: Engine) -> None:
    """Have an engine create connections whose statements are limited in time."""

    def connect(dialect: Any, record: Any, arguments: list[Any], parameters: dict[str, Any]) -> Any:
        return _TimedConnection.connect(*arguments, **parameters)

    event.listen(engine, "do_connect", connect)
