"""Rates and budgets that servers share: each server leases portions of them from the guard's database.

A portion is counted in the database before it is used (`store`). A server uses it in memory, so most calls
read no database (`shares`); a call that finds nothing left waits until its server has leased more, or is
refused if the database does not answer (`leasing`). Only a server whose policy counts in the database imports
this package.
"""
