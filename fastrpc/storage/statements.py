"""`NamedStatement`: a statement that is run often, with values by name.

SQLAlchemy makes its text once for each kind of database, and the driver gets the values as they are: what
`Connection.execute` does for each statement takes longer than a small change itself.
"""

from __future__ import annotations

from sqlalchemy.dialects import postgresql, sqlite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from sqlalchemy import Select
    from sqlalchemy.engine import Connection, CursorResult
    from sqlalchemy.sql.dml import Insert, Update

INSERTS: dict[str, Callable[..., postgresql.Insert | sqlite.Insert]] = {
    "postgresql": postgresql.insert,
    "sqlite": sqlite.insert,
}
"""By the kind of database, the function of an INSERT that can leave out a row which is there."""


class NamedStatement:
    """A statement whose values are bound parameters of types that the drivers have: texts and numbers."""

    def __init__(self, statement: Select[Any] | Insert | Update) -> None:
        self._statement = statement
        self._texts: dict[str, str] = {}

    def run(self, connection: Connection, values: Mapping[str, Any]) -> CursorResult[Any]:
        """Run it in a transaction; values that it does not name are ignored."""
        text = self._texts.get(connection.dialect.name) or self._made(connection)
        return connection.exec_driver_sql(text, dict(values))

    def _made(self, connection: Connection) -> str:
        is_sqlite = connection.dialect.name == "sqlite"
        dialect = sqlite.dialect(paramstyle="named") if is_sqlite else connection.dialect
        text = self._texts[connection.dialect.name] = str(self._statement.compile(dialect=dialect))
        return text
