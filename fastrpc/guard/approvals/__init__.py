"""Calls that a person is asked about: bound to what will run, kept in the guard's database, used once.

`asking.Approvals` is what the guard calls; `store` keeps them and changes them, for servers and commands
alike; `binding` says what an approval is bound to; `form` asks through the client, `watching` waits for what
others decide. Importing this package imports nothing.
"""
