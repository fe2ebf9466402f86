"""Writes results that are content, for the compiled connection."""
