"""FastMCP's transforms: what changes the components of a server or a provider on their way to its clients.

`base` has the class that programs derive theirs from, the other modules the ready ones. What applies them is
`fastrpc.compat.composition.chain`.
"""
