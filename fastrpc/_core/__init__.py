"""The compiled core: framer, message, plan, encode, connection, and stream, the one that does I/O."""
