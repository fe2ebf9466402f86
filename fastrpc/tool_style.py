"""The style of a tool: how it is described and how its results are encoded, where frameworks differ.

Tools have fastrpc's style unless they are written for another framework (`fastrpc.compat`). Costs nothing in
a call: a call plan reads it once.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class ToolStyle:
    """How a tool is described, and how its lists and errors are encoded.

    `explicit_nulls`: the schema of a parameter or a member that may be None has ``null`` among its types and,
    if that is its default, ``"default": null``. `block_per_item`: each item of a list is one block of
    content, instead of the list's JSON as one text. `structures_texts`: results that are declared as text, as
    None, or as a union with either, have an output schema and structured content, as other values have.
    `marks_wrapping`: the output schema of a wrapped result is marked as in FastMCP. `structures_objects`:
    results that are objects are structured content without an output schema, too. `aliases_results`: all
    fields of pydantic models are sent under their aliases; without it only those of models with the
    configuration ``serialize_by_alias``.
    Without `checks_names`, a tool whose name the protocol advises against is served, with a warning.
    Without `checks_results`, a result that does not conform to the output schema is sent, as is content for
    any schema; with `checks_objects`, a result whose schema is an object's must conform even then.
    `convert` converts a result in the classes of another framework to fastrpc's, unless the connection
    encodes it by itself. `readable` converts a result without an output schema that JSON cannot represent to
    one that can be sent as text. `numeric` converts the numbers of other libraries, in a result with an
    output schema, to Python's.

    `refusal_prefix` begins the text of a ToolError or of invalid arguments, `failure_prefix` that of another
    exception, instead of the name of its class; ``{name}`` in them is the tool's name. With `hides_failures`
    the text of those other exceptions is left out.
    """

    def __init__(
        self,
        *,
        explicit_nulls: bool = False,
        block_per_item: bool = False,
        structures_texts: bool = False,
        structures_objects: bool = False,
        checks_results: bool = True,
        checks_names: bool = True,
        aliases_results: bool = True,
        marks_wrapping: bool = False,
        refusal_prefix: str | None = None,
        failure_prefix: str | None = None,
        hides_failures: bool = False,
        convert: Callable[[Any], Any] | None = None,
        readable: Callable[[Any], Any] | None = None,
        numeric: Callable[[Any], Any] | None = None,
    ) -> None:
        self.explicit_nulls = explicit_nulls
        self.block_per_item = block_per_item
        self.structures_texts = structures_texts
        self.structures_objects = structures_objects
        self.checks_results = checks_results
        self.checks_objects = checks_results
        self.checks_names = checks_names
        self.aliases_results = aliases_results
        self.marks_wrapping = marks_wrapping
        self._refusal = refusal_prefix
        self._failure = failure_prefix
        self.hides_failures = hides_failures
        self.convert = convert
        self.readable = readable
        self.numeric = numeric

    def with_objects_as_text(self) -> ToolStyle:
        """Return this style, but without `structures_objects`."""
        if not self.structures_objects:
            return self
        from copy import copy

        found = copy(self)
        found.structures_objects = False
        return found

    def refusal_prefix(self, name: str) -> str | None:
        """Return the prefix of the text of a refusal by the tool with this name, None for no prefix."""
        return None if self._refusal is None else self._refusal.replace("{name}", name)

    def failure_prefix(self, name: str) -> str | None:
        """Return the prefix of a failure's text for the tool with this name; None: the exception's class."""
        return None if self._failure is None else self._failure.replace("{name}", name)

    def failure_text(self, name: str, error: BaseException, text: str) -> str:
        """Return the text of a failure; `text` is that of the exception, with its secrets masked."""
        prefix = self.failure_prefix(name)
        if prefix is None:
            kind = type(error).__name__
            return f"{kind}: {text}" if text and not self.hides_failures else kind
        return prefix + text if text and not self.hides_failures else prefix.rstrip(": ")


PLAIN = ToolStyle()
"""fastrpc's own style."""
