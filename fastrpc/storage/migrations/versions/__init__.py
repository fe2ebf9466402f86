"""One file for each revision of the schema. Each defines its tables itself: `schema` is the newest one."""
