"""The revisions of the shared store, for Alembic."""
