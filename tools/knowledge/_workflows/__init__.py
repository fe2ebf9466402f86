"""Workflows: what a definition may contain (`definition`), the templates in it (`templates`), what a run does
(`interpreter`), and the persistence of runs (`engine`, on DBOS).

Each step is a call of the server in the name of the run's starter, guard included. A finished step is on disk
before the next one begins, so after a crash a run continues where it stopped. Importing this imports no
library. DBOS is imported when the first run of a process begins, or a caller asks for a run.
"""
