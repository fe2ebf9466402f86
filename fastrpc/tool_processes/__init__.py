"""Processes of a server in which tools with `run="process"` are called.

A process loads the module of a tool (`child`) and serves its functions to this server alone, over pipes, one
call at a time, as `fastrpc serve` would: so arguments and results are those of the protocol, and nothing is
pickled. It is started by the first call that finds none idle, below a reaper (`fastrpc.processes`): it ends
with the server, however that ends, and all that it has started ends with it. `Processes` has those of one
event loop. Which functions may run so is decided by `fastrpc.definitions.offloaded`.
"""
