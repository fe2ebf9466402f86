"""JSON-RPC to a chain's node over HTTP: one connection pool for each chain, bounded answers, errors with
their data.

An error of the node becomes RpcError, with the bytes of a revert. A node that cannot be reached or answers
something else raises EngineError(CHAIN_RPC_FAILED), with the URL's secrets masked. The local chain is reached
directly. All others are reached through the checking proxy, which connects only to public addresses and to
the networks of FASTRPC_CONTRACTS_NETWORKS. Redirects are not followed. The first use imports httpx.
"""

from __future__ import annotations

import asyncio
import json
from itertools import count

from .. import _settings
from .._errors import CHAIN_RPC_FAILED, EngineError
from .._values import masked_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import httpx

    from fastrpc.egress_proxy import EgressProxy

MOST_BYTES = 32 * 1024 * 1024
MOST_NODES = 16
TIMEOUT_SECONDS = 20.0
CONNECT_SECONDS = 5.0

TOO_MANY = (-32005, 429)
"""Codes of a node that was asked too often (EIP-1474), and of nodes that use HTTP's code."""


class RpcError(Exception):
    """The node has answered with an error. `data`: the bytes of a revert, if it has any. `retry`: the same
    request may succeed later."""

    def __init__(self, code: int, message: str, data: bytes | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.retry = code in TOO_MANY


class Node:
    """The node at a URL. `is_local`: it is a child of this server. After `close`, it makes new
    connections."""

    def __init__(self, url: str, *, is_local: bool) -> None:
        self.url = url
        self._is_local = is_local
        self._numbers = count(1)
        self._client: httpx.AsyncClient | None = None
        self._proxy: EgressProxy | None = None
        self._connecting = asyncio.Lock()
        self._running = 0

    async def request(
        self, method: str, *params: Any, seconds: float = TIMEOUT_SECONDS, most_bytes: int = MOST_BYTES
    ) -> Any:
        """Return the result. Raises RpcError and EngineError(CHAIN_RPC_FAILED)."""
        self._running += 1
        try:
            return await self._ask(method, params, seconds, most_bytes)
        finally:
            self._running -= 1

    @property
    def is_idle(self) -> bool:
        """Whether no request is pending."""
        return self._running == 0

    async def _ask(self, method: str, params: tuple[Any, ...], seconds: float, most_bytes: int) -> Any:
        import httpx

        client = self._client or await self._connect()
        body = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        try:
            status, content = await asyncio.wait_for(self._answer(client, body, seconds, most_bytes), seconds)
        except (asyncio.TimeoutError, httpx.TimeoutException):
            raise self._failed("did not answer in time", retry=True) from None
        except httpx.InvalidURL:
            raise self._failed("is not a usable URL") from None
        except httpx.HTTPError as error:
            raise self._unreached(type(error).__name__) from None
        if self._proxy is not None and self._proxy.refusals:
            raise self._unreached("")  # the proxy has answered, not the node
        return self._result(status, content)

    async def number(self, method: str, *params: Any) -> int:
        """`request`, for a result that is a number."""
        found = await self.request(method, *params)
        try:
            return int(found, 16)
        except (TypeError, ValueError):
            raise self._failed(f"has answered {method} with no number") from None

    async def data(self, method: str, *params: Any) -> bytes:
        """`request`, for a result that is bytes."""
        found = await self.request(method, *params)
        try:
            return bytes.fromhex(found.removeprefix("0x"))
        except (AttributeError, ValueError):
            raise self._failed(f"has answered {method} with no bytes") from None

    async def close(self) -> None:
        client, self._client = self._client, None
        proxy, self._proxy = self._proxy, None
        if client is not None:
            await client.aclose()
        if proxy is not None:
            await proxy.close()

    async def _connect(self) -> httpx.AsyncClient:
        """The client, with its proxy: one for all concurrent requests."""
        import httpx

        async with self._connecting:
            if self._client is not None:
                return self._client
            if not self._is_local and self._proxy is None:
                from fastrpc.egress_proxy import EgressProxy

                networks = [each for each in _settings.NETWORKS.read() if each != "public"]
                allowed = ["0.0.0.0/0", "::/0"] if networks == ["all"] else networks
                self._proxy = await EgressProxy(allow=allowed).start()
            proxy = None if self._proxy is None else self._proxy.url_with_password
            self._client = httpx.AsyncClient(proxy=proxy, trust_env=False)
            return self._client

    async def _answer(
        self, client: httpx.AsyncClient, body: dict[str, Any], seconds: float, most_bytes: int
    ) -> tuple[int, bytes]:
        """Return the status and the content of the answer to a request."""
        import httpx

        timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
        content = bytearray()
        async with client.stream("POST", self.url, json=body, timeout=timeout) as response:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > most_bytes:
                    raise self._failed(f"answered more than {most_bytes} bytes")
            return response.status_code, bytes(content)

    def _result(self, status: int, content: bytes) -> Any:
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not ("result" in answer or isinstance(answer.get("error"), dict)):
            raise self._failed(
                f"answered HTTP {status} and no JSON-RPC", retry=status in (429, 502, 503, 504)
            )
        if "error" in answer:
            error = answer["error"]
            raise RpcError(_number(error.get("code")), str(error.get("message"))[:500], _revert_data(error))
        return answer["result"]

    def _unreached(self, reason: str) -> EngineError:
        """Return the error for a node that was not reached, with `reason` if the proxy has recorded none."""
        from fastrpc.egress_proxy import NOT_A_WEB_PORT, NOT_PUBLIC

        refused = next(iter(self._proxy.refusals.values()), "") if self._proxy is not None else ""
        is_forbidden = refused in (NOT_PUBLIC, NOT_A_WEB_PORT)
        cure = f"; {_settings.NETWORKS.name} can allow its network" if is_forbidden else ""
        return self._failed(f"cannot be reached: {refused or reason}{cure}", retry=not is_forbidden)

    def _failed(self, reason: str, *, retry: bool = False) -> EngineError:
        name = "the local chain" if self._is_local else masked_url(self.url)
        return EngineError(CHAIN_RPC_FAILED, f"{name} {reason}", retry=retry)


class Nodes:
    """The nodes that were asked most recently, by URL; they keep their connections. Others are closed when
    they have no pending request."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    async def at(self, url: str, *, is_local: bool) -> Node:
        """Return the node at a URL."""
        node = self._nodes.pop(url, None) or Node(url, is_local=is_local)
        self._nodes[url] = node
        for old, each in list(self._nodes.items())[:-MOST_NODES]:
            if each.is_idle:
                del self._nodes[old]
                await each.close()
        return node


def _number(code: Any) -> int:
    return code if isinstance(code, int) else 0


def _revert_data(error: dict[str, Any]) -> bytes | None:
    """The revert's bytes, which nodes put under ``data``, some of them one level deeper."""
    data = error.get("data")
    while isinstance(data, dict):
        data = data.get("data")
    if not isinstance(data, str) or not data.startswith("0x"):
        return None
    try:
        return bytes.fromhex(data[2:])
    except ValueError:
        return None
