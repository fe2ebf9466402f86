"""The terminal of a person: raw mode, keys, texts, and what asks there (menus, forms line by line).

`dialog` asks with a menu on the whole screen, `line_form` field by field in lines. Both open the
terminal by `device`. `menu`, `keys` and `text` do no I/O. A server imports nothing of this package before its
first question.
"""
