"""The revisions of the store's schema, one file each, run by `fastrpc.storage`. A released one never
changes."""
