"""Approvals of calls by a person: bound to what will run, stored in the guard's database, used once.

The guard calls `asking.Approvals`. `store` stores and changes approvals, for servers and commands; `binding`
defines what an approval is bound to; `form` asks through the client; `watching` waits for decisions by other
processes. Importing this package imports nothing.
"""
