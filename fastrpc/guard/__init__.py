"""The guard: who may call what. `GuardedServer` applies it to a server of a program.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* which calls are allowed, and how the policy says so: `policy/` (its docstring lists the files)
* what happens at each call, in which order: `guard.py`; the likely case, compiled: `_core/call_gate.pyx`
* requests that are no calls, if rates count them: `requests.py`
* who calls, and by which token: `callers/`; how often and how much: `budgets/`
* what a person has to approve, and what the person is shown: `approvals/`
* what is recorded, and how it is verified: `audit/`; why a call was denied: `reasons.py`, `explanation.py`
* what a caller may do: `permissions.py`; a policy that is changed: `editing.py`, `replay.py`
* what a command line for bash runs: `shell/`; the language of conditions: `cel/`
* how a server gets a guard: `serving.py` for commands, `guarded_server.py` for programs
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.guard.guarded_server import GuardedServer

__all__ = ["GuardedServer"]

_HOMES = {"fastrpc.guard.guarded_server": ("GuardedServer",)}


if not TYPE_CHECKING:  # so that a type checker reports a misspelled name

    def __getattr__(name: str) -> object:
        return load(globals(), _HOMES, name)
