"""Transforms: what changes the components of a server or a provider on their way to its clients.

`base` has the class that programs derive theirs from; each ready one has a module of its own. What applies
them is `fastrpc.compat.composed`.
"""
