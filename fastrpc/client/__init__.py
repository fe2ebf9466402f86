"""The MCP client: `Client` in an event loop, `SyncClient` without one, over the compiled core.

Names are imported when they are first used.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* how a task is waited for, and when its server is out of reach: `tasks.py`; its changes: `task_changes.py`
* which `${…}` of a configuration is replaced, and what is refused: `variables.py`; the entries: `config.py`
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc._core.call_result import CallResult
    from fastrpc.client.client import Client
    from fastrpc.client.listening import Listening
    from fastrpc.client.oauth import ClientCredentials, OAuth
    from fastrpc.client.oauth.token_store import FileStore, KeyringStore
    from fastrpc.client.results import CompletionResult, Described, PromptResult, ReadResult
    from fastrpc.client.sync import SyncClient
    from fastrpc.client.tasks import RemoteTask, SyncRemoteTask

__all__ = [
    "CallResult",
    "Client",
    "ClientCredentials",
    "CompletionResult",
    "Described",
    "FileStore",
    "KeyringStore",
    "Listening",
    "OAuth",
    "PromptResult",
    "ReadResult",
    "RemoteTask",
    "SyncClient",
    "SyncRemoteTask",
]

_HOMES = {
    "fastrpc._core.call_result": ("CallResult",),
    "fastrpc.client.client": ("Client",),
    "fastrpc.client.listening": ("Listening",),
    "fastrpc.client.oauth": ("ClientCredentials", "OAuth"),
    "fastrpc.client.oauth.token_store": ("FileStore", "KeyringStore"),
    "fastrpc.client.results": ("CompletionResult", "Described", "PromptResult", "ReadResult"),
    "fastrpc.client.sync": ("SyncClient",),
    "fastrpc.client.tasks": ("RemoteTask", "SyncRemoteTask"),
}


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        return load(globals(), _HOMES, name)
