"""Writes answers into one reused buffer. The compiled methods are for the connection and the stream."""

class OutputBuffer:
    """Answers that wait to be sent. Ids and results are given as JSON text."""

    @property
    def end(self) -> int: ...
    @property
    def unsent(self) -> int:
        """How many bytes wait to be taken."""
    @property
    def total(self) -> int:
        """How many bytes have ever been written."""
    def take(self) -> bytes:
        """Return all waiting bytes and forget them."""
    def answer(self, id: bytes, result: bytes) -> None:
        """Answer the request `id` with `result`."""
    def error(self, id: bytes, error: bytes) -> None:
        """Answer the request `id` with an error object."""
    def text(self, id: bytes, text: str, tail: bytes) -> None:
        """Answer with one text block, followed by `tail`.

        Raises UnicodeEncodeError for a lone surrogate, before anything is written.
        """
    def value(self, id: bytes, value: object, form: int, tail: bytes) -> bool:
        """Answer with a plain value: its JSON as a text and, by the form, as structured content too.

        `tail` begins with the end of the text block, ``"}]``. Returns False, with nothing written, for
        what is not plain, and for a text or None, which go another way.
        """
    def line(self, message: bytes) -> None:
        """Write a whole message, given without its newline."""

def quoted(text: str) -> bytes:
    """Return `text` as a JSON string, in UTF-8. Raises UnicodeEncodeError for a lone surrogate."""

TEXT_FORM: int
"""A result that is a text alone."""
OBJECT_FORM: int
"""A text, and the value as structured content if it is a dict."""
WRAPPED_FORM: int
"""A text, and as structured content the value as ``{"result": value}``."""

def dumps(value: object) -> bytes:
    """Return a JSON value, subclasses included, as UTF-8 text.

    Raises TypeError for anything else, for NaN and for more than 200 levels; UnicodeEncodeError for a
    lone surrogate.
    """

def plain_json(value: object) -> bytes | None:
    """Return the JSON of a plain value as UTF-8 text, or None.

    Plain are exact str, int, float, bool, None and exact dict, list and tuple of plain values with str as
    keys; no NaN, no infinity, no lone surrogate, no integer that is too long for `str`, and at most 200
    levels. A float is written as `repr` writes it.
    """

def result_of(value: object, form: int, tail: bytes) -> bytes | None:
    """Return the result that `OutputBuffer.value` writes, without its envelope, or None where that is
    False."""

def is_plain(value: object) -> bool:
    """Say whether a value is made of JSON's own types alone: every key a text, every number finite."""
