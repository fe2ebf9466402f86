"""Turns one signal into bytes in a pipe; see the compiled module's text."""

def catch(number: int) -> int:
    """Write a byte for each signal of this number from now on; return the descriptor to read them from.

    One signal at a time; 0 catches none, and there is only `wake`. Raises OSError.
    """

def wake() -> None:
    """Write a byte as the signal does, for the reader to look up."""

def release() -> None:
    """Take the signal as before `catch`."""

def forget() -> None:
    """Take the signal as before, and let go of the pipe, in a child process."""
