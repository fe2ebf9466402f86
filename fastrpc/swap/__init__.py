"""`fastrpc swap` and `fastrpc compare`: names that are served, rewritten files, servers compared."""
