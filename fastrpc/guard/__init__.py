"""The guard: who may call what. `callers` are those who call."""
