"""Search by words: what a text is indexed by, and what a question asks of the index.

`words` makes terms of a text, `question` reads what a person types. Neither knows of a database; `_store`
has an index for each kind.
"""
