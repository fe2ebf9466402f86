"""Analyses shell command lines for rules: which programs a line runs, and whether all of them only read.

`lexer` reads the words as bash does, `parser` has tree-sitter confirm them; `programs` and `git` list the
programs that only read, each with its options, and `harmless` compares a line with them. This package runs
nothing and accesses no files.
"""
