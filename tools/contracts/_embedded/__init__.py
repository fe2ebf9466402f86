"""The embedded engine (`engine`): the nine verbs by programs that exist, solc, forge and anvil."""
