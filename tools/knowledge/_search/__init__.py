"""Search by words: the terms that a text is indexed by, and the query that a question becomes.

`words` makes terms of a text, `question` parses a question. Neither uses a database; `_store` has an index
for each kind.
"""
