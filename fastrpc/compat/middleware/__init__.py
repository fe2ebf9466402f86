"""FastMCP's middleware classes: objects whose coroutines are called around a server's requests.

`base` has the class that programs derive theirs from, the other modules the ready ones. What calls them is
`fastrpc.compat.interception.chain`, for calls and lists whose hook a class overrides: with `on_list_tools`
alone, calls do not change. Imported by the first middleware.
"""
