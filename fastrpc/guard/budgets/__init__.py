"""Budgets of callers: what they may use in a day or a month, counted by all processes of a host together.

A call is counted before it runs, with an estimate of amounts that are unknown then (`ledger`), and corrected
when its record arrives. The counts are in a file (`file`) that outlives the processes. Days and months are in
UTC (`periods`). `fastrpc.guard.policy` defines the budgets of a caller. Only a server with budgets imports
this package.
"""
