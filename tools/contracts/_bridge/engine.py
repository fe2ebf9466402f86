"""The bridge: the nine verbs by an engine at a URL, or one that a command starts (`--engine`).

After a transport failure, requests that only read are repeated twice and all others never, so that the engine
does everything once. `broadcasts` sends transactions. After five failures in a row a breaker refuses requests
for some seconds. `_requests` validates parameters before they are sent; sources cannot configure the engine.
docs/contracts.md gives the cost besides the engine's own answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shlex
from typing import Any

from ... import _private_folder
from .. import _settings, _values
from .._artifacts import chosen
from .._chain import abi as abi_codec
from .._errors import ARTIFACT_NOT_FOUND, ENGINE_TIMEOUT, ENGINE_UNAVAILABLE, EngineError, invalid
from .._project_files.store import Chain, Store
from .._verbs import VERBS
from . import answers
from .broadcasts import Broadcasts
from .connection import Breaker, Unreachable
from .wire_format import to_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine

    from .connection import Report, Transport

STDIO = "stdio:"
REPEAT_PAUSES = (0.1, 0.4)
"""Seconds before a request that reads is repeated."""

logger = logging.getLogger("fastrpc")


class BridgedEngine:
    """The engine at `address`, a URL or ``stdio:COMMAND``. Its ledger, locks and registered chains are stored
    below `folder`. Raises EngineError for an address that cannot be used."""

    grace_seconds = 20.0
    """Seconds that a call may take beyond the verb's limit, to look up a transaction with a lost answer."""

    def __init__(self, address: str, folder: str) -> None:
        place = os.path.join(folder, "engines", hashlib.sha256(address.encode()).hexdigest()[:16])
        _private_folder.make(place)
        self._store = Store(place)
        self._transport = self._transport_to(address)
        self._breaker = Breaker()
        self._most_seconds: float = _settings.ENGINE_SECONDS.read()
        self._projects: dict[str, str] | None = None
        self._broadcasts = Broadcasts(self, self._store, place, is_local=self._transport.is_local)

    def _transport_to(self, address: str) -> Transport:
        if not address.startswith(STDIO):
            from .http_engine import HttpEngine

            return HttpEngine(address)
        from .stdio_engine import StdioEngine

        try:
            command = shlex.split(address.removeprefix(STDIO))
        except ValueError as error:
            raise EngineError(ENGINE_UNAVAILABLE, f"{_settings.ENGINE.name}: {error}") from None
        if not command:
            raise EngineError(ENGINE_UNAVAILABLE, f"{_settings.ENGINE.name}: no command after {STDIO}")
        return StdioEngine(command, self._registrations)

    def request(
        self, verb: str, parameters: dict[str, Any], report: Report
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Run a verb and return its data; call `report` with the name of each phase. Raises EngineError."""
        run: Coroutine[Any, Any, dict[str, Any]] = getattr(self, f"_{verb}")(parameters, report)
        return run

    async def ask(self, verb: str, wire: dict[str, Any], *, reads: bool = False) -> dict[str, Any]:
        """Send a verb to the engine and return the data of its answer. Raises EngineError. Raises Unreachable
        if the engine cannot be reached; for a request that only `reads`, after the third try."""
        seconds = min(VERBS[verb].seconds, self._most_seconds)
        pauses = iter(REPEAT_PAUSES if reads else ())
        while True:
            self._breaker.check()
            try:
                envelope = await self._transport.ask(verb, wire, seconds)
                self._breaker.succeeded()
                return answers.data_of(verb, envelope)
            except TimeoutError:
                text = f"the engine has not answered within {seconds:g} s"
                raise EngineError(ENGINE_TIMEOUT, text, retry=reads) from None
            except Unreachable:
                self._breaker.failed()
                pause = next(pauses, None)
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    async def verbs(self) -> set[str]:
        """The names of the tools that the engine has. Raises EngineError."""
        return await self._transport.verbs()

    async def close(self) -> None:
        await self._transport.close()

    # --- sources --------------------------------------------------------------------------------------

    async def _compile(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        await _check_sources(given)
        report("the engine compiles")
        data = await self._do("compile", given)
        artifacts = [_artifact_of(each) for each in data["artifacts"]]
        project = data["project_id"]
        if artifacts:
            await asyncio.to_thread(self._store.put_artifacts, project, artifacts)
            if self._projects is not None:
                self._projects |= {each["name"]: project for each in artifacts}
        return {
            "project_id": project,
            "artifacts": [chosen(each, given.get("include")) for each in artifacts],
            "diagnostics": _diagnostics(data),
        }

    async def _test(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        await _check_sources(given)
        report("the engine tests")
        data = await self._do("test", given)
        skipped = sum(each["skipped"] for each in data["suites"] if isinstance(each.get("skipped"), int))
        return {"passed": 0, "failed": 0, "skipped": skipped, **data}

    async def _do(self, verb: str, given: dict[str, Any]) -> dict[str, Any]:
        """Send a verb once. If the call is cancelled, the request is closed; the engine may continue."""
        try:
            return await self.ask(verb, to_wire(verb, given))
        except asyncio.CancelledError:
            logger.info("tachyon_%s was cancelled: its request is closed, the engine may still go on", verb)
            raise

    # --- lists and lookups ----------------------------------------------------------------------------

    async def _chain_list(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        data = await self.ask("chain_list", {}, reads=True)
        active = data.get("active_chain_id") or None
        return {"chains": [_masked(each) for each in data["chains"]], "active_chain_id": active}

    async def chains(self) -> dict[str, Any]:
        """Return the data of chain_list, with the URLs unmasked. Raises EngineError."""
        return await self.ask("chain_list", {}, reads=True)

    async def _chain_register(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        profile = await self.ask("chain_register", to_wire("chain_register", given))
        chain = Chain.of(given, name="")
        await asyncio.to_thread(self._store.put_chain, chain)
        return _masked(profile)

    async def _registrations(self) -> list[dict[str, Any]]:
        """The chains that were registered with this engine, as parameters of chain_register."""
        chains = await self._store.soon(Store.chains)
        return [{name: value for name, value in each._asdict().items() if value} for each in chains]

    async def _artifact_get(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        found, _ = await self.artifact(given["name"], given.get("project_id"))
        return {"artifact": chosen(found, given.get("include"))}

    async def artifact(self, name: str, project: str | None) -> tuple[dict[str, Any], dict[str, str]]:
        """An artifact, and the parameters that identify it to the engine. Raises EngineError.

        Without a project it is that of the newest compilation of this bridge that has made such a contract,
        else the engine's own default. An engine that identifies contracts only by name is asked by name.
        """
        path, _, short = name.rpartition(":")
        if project is None:
            if self._projects is None:
                self._projects = await self._store.soon(Store.projects)
            project = self._projects.get(short)
        where = {} if project is None else {"project_id": project}
        try:
            data = await self.ask("artifact_get", {"name": name, **where}, reads=True)
        except EngineError as error:
            if error.code != ARTIFACT_NOT_FOUND or not path:
                raise
            data = await self.ask("artifact_get", {"name": short, **where}, reads=True)
            if data["artifact"].get("path") != path:
                raise
            name = short
        return {"project_id": project or "", **_artifact_of(data["artifact"])}, {"contract": name, **where}

    async def _registry_lookup(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        data = await self.ask("registry_lookup", to_wire("registry_lookup", given), reads=True)
        if not data["found"]:
            data = await self._broadcasts.remembered(given) or data
        members = ("address", "tx_hash", "contract")
        shown = {name: data.get(name) or None for name in members}
        return {"found": data["found"], **shown, "confirmed": data.get("confirmed") is True}

    async def _simulate(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        report("the engine simulates")
        try:
            data = await self.ask("simulate", to_wire("simulate", given), reads=True)
        except EngineError as error:
            raise await self._broadcasts.explained(error, given) from None
        returned, calldata = _values.bytes_of(data.get("result")), _values.bytes_of(given.get("data"))
        abi = await self._broadcasts.abi_at(given)
        decoded = abi_codec.decode_answer(calldata, abi, returned) if returned else None
        members = ("result", "gas_estimate", "revert", "trace")
        return {**{name: data.get(name) for name in members}, "decoded": decoded}

    # --- transactions ---------------------------------------------------------------------------------

    async def _deploy(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        return await self._broadcasts.deploy(given, report)

    async def _call(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        return await self._broadcasts.call(given, report)


async def _check_sources(given: dict[str, Any]) -> None:
    """Raise EngineError for sources that configure the engine or have a path out of its folder."""
    from .._project_files import source_files

    allowed: bool = _settings.PROJECT_CONFIG.read()
    if "sources" in given:
        await asyncio.to_thread(source_files.gathered, given["sources"], None, allowed)
    elif not allowed:  # these configure forge, and can make it run programs
        for name in (source_files.CONFIG, source_files.REMAPPINGS, ".env"):
            if os.path.lexists(os.path.join(given["project_root"], name)):
                raise invalid(
                    "project_root", "a folder that does not configure the engine (or --project-config)", name
                )


def _artifact_of(artifact: dict[str, Any]) -> dict[str, Any]:
    """An artifact of the engine, in the form of the embedded engine's. Raises
    EngineError(ENGINE_PROTOCOL)."""
    found = {"name": "", "path": "", "compiler": None, **artifact}
    abi = found.get("abi")
    if not isinstance(found["name"], str) or not isinstance(found["path"], str) or not found["name"]:
        raise answers.protocol_error("sent an artifact without a name")
    try:
        found["abi"] = _values.abi("abi", [] if abi is None else abi)
    except EngineError as error:
        raise answers.protocol_error(f"sent an artifact with an invalid ABI: {error.message}") from None
    for part in ("bytecode", "deployedBytecode"):
        code = found.get(part) or "0x"
        if not isinstance(code, str):
            raise answers.protocol_error(f"sent an artifact whose {part} is not a string")
        found[part] = code if code.startswith("0x") else f"0x{code}"
    return found


def _diagnostics(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The compiler's messages: structured ones where the engine has them, else its warnings."""
    if isinstance(data.get("diagnostics"), list):
        return [each for each in data["diagnostics"] if isinstance(each, dict)]
    return [{"severity": "warning", "message": str(each)} for each in data.get("warnings") or ()]


def _masked(chain: dict[str, Any]) -> dict[str, Any]:
    url = chain.get("rpc_url")
    shown = _values.masked_url(url) if isinstance(url, str) and url else None
    members = {name: chain.get(name) for name in ("id", "name", "chain_id", "preset", "explorer")}
    features = chain.get("features") or []
    return {**members, "rpc_url": shown, "features": features, "active": chain.get("active") is True}
