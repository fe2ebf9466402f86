"""The commands that this toolset adds to the command line: what each does, and where it is."""

COMMANDS = {
    "state": ("show or clear what the agent's tools keep on disk", "_state.command:main"),
    "search-check": ("try each search engine for real and print a table", "_search._command:main"),
}
