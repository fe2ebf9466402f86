"""Approvals of calls by a person: bound to what will run, stored in the guard's database, used once.

The guard calls `asking.Approvals`. `store` stores and changes approvals, for servers and commands; `binding`
defines what an approval is bound to; `form` asks through the client; `watching` waits for decisions by other
processes. Importing this package imports nothing.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* what a request has besides its arguments, with which an approved call then runs: `extra_params.py`
* what an approver sees and what is hashed: one form of the bound values: `canonical.py`, `display.py`; what
  may be masked in it, and in arguments that the audit log quotes: `guard/shell/masking.py`,
  `guard/shell/secret_forms.py`
"""
