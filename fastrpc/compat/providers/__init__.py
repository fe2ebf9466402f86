"""Providers: where the components of a server come from, beside its registries.

`base` has the class that programs derive theirs from; each ready one has a module of its own. What asks them
is `fastrpc.compat.composed`.
"""
