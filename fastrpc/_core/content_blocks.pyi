"""Writes results that are content, for the compiled connection."""

put_content: object
"""A capsule: the C function that writes them."""
