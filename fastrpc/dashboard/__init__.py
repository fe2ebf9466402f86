"""Pages for people: approvals to decide, served at ``/dashboard`` of a guarded server or by themselves.

`Dashboard` (`app.py`) is an ASGI application: it knows the visitor by a cookie (`access.py`), lets a page
answer and adds the headers that keep other sites out. Each page is a file of `pages`, with its templates in
`templates`; `live.py` tells open pages what has changed. Pages are made on the server and work without
scripts; htmx (`static`) replaces parts of an open page. Nothing here is imported by a server without a
dashboard.
"""
