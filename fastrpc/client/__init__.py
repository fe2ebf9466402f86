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
    "CallResult": "fastrpc._core.call_result",
    "Client": "fastrpc.client.client",
    "ClientCredentials": "fastrpc.client.oauth",
    "CompletionResult": "fastrpc.client.results",
    "Described": "fastrpc.client.results",
    "FileStore": "fastrpc.client.oauth.token_store",
    "KeyringStore": "fastrpc.client.oauth.token_store",
    "Listening": "fastrpc.client.listening",
    "OAuth": "fastrpc.client.oauth",
    "PromptResult": "fastrpc.client.results",
    "ReadResult": "fastrpc.client.results",
    "RemoteTask": "fastrpc.client.tasks",
    "SyncClient": "fastrpc.client.sync",
    "SyncRemoteTask": "fastrpc.client.tasks",
}


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        return load(globals(), _HOMES, name)
