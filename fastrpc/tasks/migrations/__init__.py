"""The revisions of the database of tasks, for Alembic."""
