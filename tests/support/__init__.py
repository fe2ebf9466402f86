"""What several files of tests share, a module for each kind of thing. `conftest.py` puts `tests/` on the
path, so a test writes ``from support.stdio import serve``. Importing this package imports none of them."""
