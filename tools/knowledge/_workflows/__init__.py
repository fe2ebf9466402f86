"""Workflows: what a definition may say (`definition`), the templates in it (`templates`), what a run does
(`interpreter`), and what makes runs last (`engine`, on DBOS).

Each step is a call of the server by whoever has started the run, guard included. What has been done is on
disk before the next step begins, so a run goes on behind a crash where it stood. Importing this imports no
library; DBOS is imported where the first run of a process begins, or one is asked for.
"""
