"""FastMCP's providers: where the components of a server come from, besides its registries.

`base` has the class that programs derive theirs from, the other modules the ready ones. What asks them is
`fastrpc.compat.composition.chain`.
"""
