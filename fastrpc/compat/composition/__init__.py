"""FastMCP servers with providers, transforms, several versions of a component or rules of a session: what
they list and call."""
