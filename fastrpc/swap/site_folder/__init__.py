"""The folder that `fastrpc swap --run` puts on a server's PYTHONPATH: one module, ``sitecustomize``."""
