"""The rules of MCP that need no I/O: versions, the lifecycle, pages of lists, URI templates.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* lifecycle, versions, the 2026-07-28 envelope: `lifecycle.py`
* which members and which content a version has: `versions.py`, compared with the published schemas by a
  test
* which URI a template matches: `uri_template.py`
"""
