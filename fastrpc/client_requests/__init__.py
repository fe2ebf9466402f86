"""The requests that a server may send to its client: elicitation, sampling, roots. The public names.

`fastrpc.Context` has a method for each; several questions at once are made of these classes, and so are the
answers. A name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.client_requests.base import Question
    from fastrpc.client_requests.elicitation import ElicitResult, Form, Visit
    from fastrpc.client_requests.pending import ANSWER_SECONDS
    from fastrpc.client_requests.roots import Roots
    from fastrpc.client_requests.sampling import Sample, Sampling

__all__ = ["ANSWER_SECONDS", "ElicitResult", "Form", "Question", "Roots", "Sample", "Sampling", "Visit"]

_HOMES = {
    "ANSWER_SECONDS": "pending",
    "Answer": "elicitation",
    "ElicitResult": "elicitation",
    "Form": "elicitation",
    "Question": "base",
    "Roots": "roots",
    "Sample": "sampling",
    "Sampling": "sampling",
    "Visit": "elicitation",
}


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'fastrpc.client_requests' has no attribute {name!r}")
        if name == "Answer":
            from warnings import warn

            warn("Answer is called ElicitResult now", DeprecationWarning, stacklevel=2)
            name = "ElicitResult"
        return getattr(__import__(f"fastrpc.client_requests.{home}", fromlist=[name]), name)
