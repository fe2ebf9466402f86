"""A circuit breaker for each engine: after three failures in a row the engine is not asked for an hour.

After the hour one search may try it again (the breaker is half open): an answer closes the breaker, a failure
keeps it open for another hour. The state is in the memory of this process; the clock is monotonic. Imports
nothing but `time`.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FAILURES = 3
SECONDS = 3600.0


class _State:
    __slots__ = ("failures", "trying", "until")

    def __init__(self) -> None:
        self.failures = 0
        self.until: float | None = None  # None: closed
        self.trying = False


class Breaker:
    """The breakers of all engines, by name. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._states: dict[str, _State] = {}

    def _state(self, name: str) -> _State:
        return self._states.setdefault(name, _State())

    def enter(self, name: str) -> bool:
        """Return whether an engine may be asked now. If so, the caller reports back by one of the next three
        methods."""
        state = self._state(name)
        if state.until is None:
            return True
        if state.trying or self._clock() < state.until:
            return False
        state.trying = True
        return True

    def answered(self, name: str) -> None:
        self._states[name] = _State()

    def failed(self, name: str) -> None:
        state = self._state(name)
        state.failures += 1
        if state.trying or state.failures >= FAILURES:
            state.until = self._clock() + SECONDS
        state.trying = False

    def left(self, name: str) -> None:
        """Note that the search was cancelled without an outcome."""
        self._state(name).trying = False

    def seconds_left(self, name: str) -> float:
        """Return for how long an engine is not asked; 0 if it may be."""
        state = self._state(name)
        return 0.0 if state.until is None else max(0.0, state.until - self._clock())

    def shown(self, name: str) -> str:
        """Return the state of an engine's breaker as a text for people."""
        state = self._state(name)
        if state.until is None:
            return f"closed ({state.failures} of {FAILURES} failures)" if state.failures else "closed"
        left = self.seconds_left(name)
        return f"open for {left / 60:.0f} min" if left else "half open"
