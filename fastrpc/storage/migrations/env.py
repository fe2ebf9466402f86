"""What Alembic runs: the migrations, on the connection and in the transaction of `migrate`.

Without Alembic around it, it does nothing.
"""

from __future__ import annotations

from alembic import context

if hasattr(context, "config"):
    context.configure(**context.config.attributes)
    context.run_migrations()
