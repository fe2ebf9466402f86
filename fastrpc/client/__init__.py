"""The MCP client: `Client` in an event loop, `SyncClient` without one, over the compiled core.

Names are imported when they are first used.
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc._core.call_result import CallResult
    from fastrpc.client.client import Client
    from fastrpc.client.listening import Listening
    from fastrpc.client.results import CompletionResult, Described, PromptResult, ReadResult
    from fastrpc.client.sync import SyncClient

__all__ = [
    "CallResult",
    "Client",
    "CompletionResult",
    "Described",
    "Listening",
    "PromptResult",
    "ReadResult",
    "SyncClient",
]

_HOMES = {
    "CallResult": "fastrpc._core.call_result",
    "Client": "fastrpc.client.client",
    "CompletionResult": "fastrpc.client.results",
    "Described": "fastrpc.client.results",
    "Listening": "fastrpc.client.listening",
    "PromptResult": "fastrpc.client.results",
    "ReadResult": "fastrpc.client.results",
    "SyncClient": "fastrpc.client.sync",
}


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        return load(globals(), _HOMES, name)
