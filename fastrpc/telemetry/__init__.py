"""Observers, statistics and the access log: they drain the recorder, off the path of calls. Nothing here is
imported until one of them is used."""
