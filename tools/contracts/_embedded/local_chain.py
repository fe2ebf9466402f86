"""The local chain of a project: one anvil, started at the first use, shared by all servers of the project.

The server that gets the lock on ``anvil.lock`` starts anvil on a free port of the loopback interface and
writes the port into ``anvil.port``. The others use that one, and take over when it has ended. anvil runs
below the reaper and ends with its server, however that ends. After each transaction, before the answer, its
state is written (`save`) and replaces the former file, so an answered transaction survives a kill -9. Its ten
accounts are unlocked, so no key is handled here; the keys that anvil prints are skipped and stored nowhere.
anvil keeps the transactions and states of its last 64 blocks, in memory. More would make the state ever
larger, and leave files that are never removed. A start costs 0.1 s.
"""

from __future__ import annotations

import asyncio
import os
import time
import zlib

from fastrpc import processes
from fastrpc.regular_files import replace_file

from ..._file_lock import lock
from .. import _programs
from .._chain.rpc import Node, RpcError
from .._chain.transactions import MOST_GAS
from .._errors import CHAIN_RPC_FAILED, EngineError
from .._project_files import held_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ID, NUMBER = "local", 31337
START_SECONDS = 15.0
BLOCKS = 64
LEFTOVER_SECONDS = 60.0  # for so long a process may still be writing it
LISTENING = b"Listening on 127.0.0.1:"
PAUSE_SECONDS = 0.02


class LocalChain:
    """The chain whose files are in `folder`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._state = os.path.join(folder, "anvil.json")
        self._port_file = os.path.join(folder, "anvil.port")
        self._process: processes.Process | None = None
        self._lock = -1
        self._node: Node | None = None
        self._starting = asyncio.Lock()

    @property
    def url(self) -> str:
        """The URL at which it listens; empty if it does not run, as far as this server knows."""
        return self._node.url if self._node is not None else ""

    async def node(self) -> Node:
        """The running chain, which is started first if need be. Raises EngineError."""
        async with self._starting:
            if self._node is not None and await self._answers(self._node):
                return self._node
            await self._forget()
            deadline = time.monotonic() + START_SECONDS
            while time.monotonic() < deadline:
                if self._take_lock():
                    return await self._start()
                node = self._node_of_others()
                if node is not None and await self._answers(node):
                    self._node = node
                    return node
                await asyncio.sleep(PAUSE_SECONDS)
        raise EngineError(
            CHAIN_RPC_FAILED, "another server holds the local chain and it does not answer", retry=True
        )

    async def save(self) -> None:
        """Write the chain's state, so that it outlives the process."""
        node = self._node
        if node is None:
            return
        packed = await node.data("anvil_dumpState")
        await asyncio.to_thread(self._write, packed)

    def _write(self, packed: bytes) -> None:
        replace_file(self._state, zlib.decompress(packed, wbits=31))

    async def end(self, node: Node) -> None:
        """End this chain, if it is still the running one and belongs to this server: the next use starts
        it."""
        async with self._starting:
            if node is self._node and self._process is not None:
                await self._forget()

    # --- the process ----------------------------------------------------------------------------------

    async def _start(self) -> Node:
        try:
            self._node = await self._started()
        except BaseException:  # another server may succeed
            await self._forget()
            raise
        return self._node

    async def _started(self) -> Node:
        command = [_programs.find("anvil"), "--host", "127.0.0.1", "--port", "0", "--chain-id", str(NUMBER)]
        command += ["--no-cors", "--no-request-size-limit", "--gas-limit", str(MOST_GAS)]
        command += ["--transaction-block-keeper", str(BLOCKS), "--prune-history", str(BLOCKS)]
        if os.path.exists(self._state):
            command += ["--load-state", self._state]
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        reader = _PortReader(port)
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": self._folder, "NO_COLOR": "1"}
        try:
            self._process = await processes.start(
                command,
                cwd=self._folder,
                env=env,
                output=processes.Output(0),
                on_output=reader.feed,
            )
            number = await self._port(port, self._process)
        except processes.ProgramError as error:
            raise self._cannot_start(str(error)) from None
        await asyncio.to_thread(replace_file, self._port_file, str(number).encode())
        return Node(f"http://127.0.0.1:{number}", is_local=True)

    async def _port(self, port: asyncio.Future[int], process: processes.Process) -> int:
        ending: asyncio.Future[None] = asyncio.ensure_future(process.wait())
        either: set[asyncio.Future[Any]] = {port, ending}
        try:
            await asyncio.wait(either, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
        if not port.done():
            raise self._cannot_start(f"it ended or did not listen; is {self._state} damaged?")
        return port.result()

    def _cannot_start(self, reason: str) -> EngineError:
        return EngineError(CHAIN_RPC_FAILED, f"the local chain, anvil, cannot be started: {reason}")

    async def _forget(self) -> None:
        process, self._process = self._process, None
        node, self._node = self._node, None
        if node is not None:
            await node.close()
        if process is not None:
            await process.terminate()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # --- among servers --------------------------------------------------------------------------------

    def _take_lock(self) -> bool:
        """Whether this server now owns the chain."""
        descriptor = held_lock.opened(os.path.join(self._folder, "anvil.lock"))
        if lock(descriptor) is False:
            os.close(descriptor)
            return False
        self._lock = descriptor
        if os.path.exists(self._port_file):  # of one that has ended: another program may have its port now
            os.unlink(self._port_file)
        self._clear()
        return True

    def _clear(self) -> None:
        """Remove files that killed servers have begun to write (`replace_file`)."""
        with os.scandir(self._folder) as entries:
            begun = [each for each in entries if each.name.startswith(("anvil.json.", "anvil.port."))]
        for each in begun:
            if time.time() - each.stat().st_mtime > LEFTOVER_SECONDS:
                os.unlink(each.path)

    def _node_of_others(self) -> Node | None:
        try:
            with open(self._port_file, encoding="ascii") as file:
                return Node(f"http://127.0.0.1:{int(file.read())}", is_local=True)
        except (OSError, ValueError):
            return None

    async def _answers(self, node: Node) -> bool:
        """Whether a node answers and is this project's chain."""
        try:
            return await node.number("eth_chainId") == NUMBER
        except (EngineError, RpcError):
            await node.close()
            return False


class _PortReader:
    """Finds the port in anvil's output, of which it stores only the last bytes until then."""

    def __init__(self, port: asyncio.Future[int]) -> None:
        self._port = port
        self._tail = b""

    def feed(self, data: bytes) -> None:
        if self._port.done():
            return
        self._tail += data
        found = self._tail.find(LISTENING)
        if found < 0:
            self._tail = self._tail[-len(LISTENING) :]
        elif (end := self._tail.find(b"\n", found)) >= 0:
            self._port.set_result(int(self._tail[found + len(LISTENING) : end]))
            self._tail = b""
