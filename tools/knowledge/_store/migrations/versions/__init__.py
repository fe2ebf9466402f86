"""The revisions of the schema, one file each; a released one is never changed."""
