"""The nine verbs by an engine that somebody else runs, which speaks tachyon's wire: over HTTP or stdio."""
