"""Writes answers into one reused buffer. The compiled methods are for the connection and the stream."""

class Output:
    """Answers that wait to be sent. Ids and results are given as JSON text."""

    @property
    def end(self) -> int: ...
    def take(self) -> bytes:
        """Return all waiting bytes and forget them."""
    def answer(self, id: bytes, result: bytes) -> None:
        """Answer the request `id` with `result`."""
    def text(self, id: bytes, text: str, tail: bytes) -> None:
        """Answer with one text block and, behind the text, `tail`.

        Raises UnicodeEncodeError for a lone surrogate, before anything is written.
        """
    def line(self, message: bytes) -> None:
        """Write a whole message, given without its newline."""

def quoted(text: str) -> bytes:
    """Return `text` as a JSON string, in UTF-8. Raises UnicodeEncodeError for a lone surrogate."""

def dumps(value: object) -> bytes:
    """Return a plain JSON value as UTF-8 text. Raises TypeError for anything else, NaN included."""

def is_plain(value: object) -> bool:
    """Say whether a value is made of JSON's own types alone, and every number in it is finite."""
