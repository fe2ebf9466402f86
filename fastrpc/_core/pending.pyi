"""Coroutines of calls that the connection begins by itself, and the calls that wait for them."""

from typing import Any

begin_call: Any
"""A capsule: takes the first step of a call's coroutine."""
