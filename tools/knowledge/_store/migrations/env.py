"""What Alembic runs: the migrations of the store, on the connection that it is given."""

from __future__ import annotations

from alembic import context

if hasattr(context, "config"):
    context.configure(**context.config.attributes)
    context.run_migrations()
