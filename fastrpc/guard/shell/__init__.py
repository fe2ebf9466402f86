"""Shell command lines that rules may trust: what a line runs, and whether all of that only reads.

`lexer` reads the words as bash does, `parser` has tree-sitter confirm them; `programs` and `git` list the
programs that only read, each with its options, and `harmless` holds a line against them. None of it runs
anything, or looks at a file.
"""
