"""Tools, resources and prompts of a compat server as objects, and which of them are offered."""
