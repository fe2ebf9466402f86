"""One file for each revision of the schema. They hold their own tables: `schema` is that of the newest."""
