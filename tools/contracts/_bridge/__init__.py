"""The nine verbs by an external engine that speaks tachyon's wire format, over HTTP or stdio."""
