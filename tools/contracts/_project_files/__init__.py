"""The files of a project on disk, for every engine: its sources, its store with the ledger, its locks."""
