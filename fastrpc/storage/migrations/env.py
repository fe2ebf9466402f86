"""What Alembic runs: the migrations, on the connection and in the transaction of `migrate`.

Without Alembic around it, it does nothing.
"""

from __future__ import annotations

from alembic import context

from fastrpc.storage.schema import VERSION_TABLE

if hasattr(context, "config"):
    context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
    context.run_migrations()
