"""Budgets of callers: what they may use in a day or a month, counted by all processes of a host together.

A call is counted before it runs, with an estimate of what is not known then (`ledger`), and corrected when
its record comes. What is counted lies in a file (`file`) that outlives the processes. Days and months are
those of UTC (`periods`). Which budgets a caller has is said by `fastrpc.guard.policy`. Imported by a server
with budgets alone.
"""
