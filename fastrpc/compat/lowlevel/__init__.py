"""The low-level `Server` of the official SDK, on fastrpc's engine."""
