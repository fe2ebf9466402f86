"""What this toolset adds to the command line: commands, and examples of calls for the help."""

COMMANDS = {
    "state": ("show or clear what the agent's tools keep on disk", "_state.command:main"),
    "search-check": ("try each search engine for real and print a table", "_search._command:main"),
}

EXAMPLES = {
    "call": """\
  fastrpc call Bash command='ls -l' timeout=5000
  fastrpc call Bash --arguments '{"command": "date"}'
  echo '{"command": "date"}' | fastrpc call Bash --arguments -
"""
}
"""Lines that come first among the examples of a command's help."""
