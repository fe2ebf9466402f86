"""The requests that a server may send to its client: elicitation, sampling, roots. The public names.

`fastrpc.Context` has a method for each; several requests at once (`Context.ask`) are made of these classes.
A name is imported when it is first used.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* what the client may be asked: `elicitation.py`, `sampling.py`, `roots.py`; how the question is sent and
  answered: `pending.py`; the state in a repeated request: `request_state.py`
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.client_requests.base import InputRequest
    from fastrpc.client_requests.elicitation import ElicitResult, Form, Visit
    from fastrpc.client_requests.pending import ANSWER_SECONDS
    from fastrpc.client_requests.roots import Roots
    from fastrpc.client_requests.sampling import Sample, Sampling

__all__ = ["ANSWER_SECONDS", "ElicitResult", "Form", "InputRequest", "Roots", "Sample", "Sampling", "Visit"]

_HOMES = {
    "fastrpc.client_requests.base": ("InputRequest",),
    "fastrpc.client_requests.elicitation": ("ElicitResult", "Form", "Visit"),
    "fastrpc.client_requests.pending": ("ANSWER_SECONDS",),
    "fastrpc.client_requests.roots": ("Roots",),
    "fastrpc.client_requests.sampling": ("Sample", "Sampling"),
}
_FORMER = {"Answer": "ElicitResult", "Question": "InputRequest"}
"""Names that have been renamed, until 1.0."""


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        if name not in _FORMER:
            return load(globals(), _HOMES, name)
        from warnings import warn

        new = _FORMER[name]
        warn(f"{name} is called {new} now", DeprecationWarning, stacklevel=2)
        return load({}, _HOMES, new)
