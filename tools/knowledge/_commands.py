"""What this toolset adds to the command line: ``fastrpc knowledge COMMAND``."""

COMMANDS = {
    "import": ("import notes, JSON, and what other memories export", "_moving_commands:import_entries"),
    "export": (
        "write an owner's entries as JSON lines, or all that is theirs into a folder",
        "_moving_commands:export_entries",
    ),
    "stats": ("print how much the store contains", "_moving_commands:show_statistics"),
    "check": ("check that the store is whole", "_moving_commands:check_store"),
    "reindex": ("rebuild the indexes", "_moving_commands:reindex_store"),
}
