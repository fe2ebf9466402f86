"""The embedded engine (`engine`): the nine verbs by existing programs: solc, forge and anvil."""
