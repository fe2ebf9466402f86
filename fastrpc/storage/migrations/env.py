"""Alembic executes this file: it runs the migrations on the connection and in the transaction of `migrate`.

When it is imported without Alembic, it does nothing.
"""

from __future__ import annotations

from alembic import context

if hasattr(context, "config"):
    context.configure(**context.config.attributes)
    context.run_migrations()
