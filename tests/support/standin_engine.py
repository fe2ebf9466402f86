"""A stand-in for an engine of contracts, scripted fault by fault; it is also the description of its wire.

What an engine is asked and says, whatever the way (`WIRE` has the parameters of each verb):

    asked     tachyon_deploy {"idempotency_key": "k", "chain_id": "local-anvil", "contract": "Counter", …}
    says      {"ok": true, "data": {"address": "0x…", "tx_hash": "0x…", …}}
    or        {"ok": false, "data": {…}, "error": {"code": "DEPLOY_FAILED", "message": "…", "retry": false}}

Over HTTP (`standin_http`) that is JSON-RPC 2.0 at /rpc, over stdio (here) a `tools/call` of MCP. Its habits
are those of the engine whose wire it is. Unknown parameters are passed over, one of another type is
refused. Empty members are left out or null; the data of a failure is there, and empty. Amounts are decimal
text. A number in arguments would be a double, so integers come as text there; a block in hex is read
wrongly. A deployment is kept under the text that `chain_id` was. What was compiled and deployed is read
from a file at the start, and written to it: two processes do not see what the other one has done since. A
custom chain is not written.

What it plays instead of the answer is made by a function of here, such as `fails` and `loses`, and is plain
JSON, so that it can be handed to a process. By hand:

    python tests/support/standin_engine.py --http [PORT]
    python tests/support/standin_engine.py --stdio FOLDER

The standard library alone; nothing of fastrpc is imported.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import signal
import sys
import time
from typing import Any

Play = dict[str, Any]

CHAIN, NUMBER = "local-anvil", 31337
OTHER_CHAIN, OTHER_NUMBER = "second-anvil", 31338
NO_NODE = "http://127.0.0.1:9"  # the port of `discard`: no one is there
PROJECT = "default-project"
MOST_LINE = 1024 * 1024 - 1  # bytes that it reads before a newline; it ends at a longer line
SECONDS = 20.0

WIRE: dict[str, dict[str, type | tuple[type, ...]]] = {
    "tachyon_compile": {
        "project_root": str,
        "project_id": str,
        "sources": dict,
        "targets": list,
        "optimize": bool,
        "via_ir": bool,
        "evm_version": str,
    },
    "tachyon_test": {
        "project_root": str,
        "sources": dict,
        "match_path": str,
        "match_contract": str,
        "filter": str,
        "evm_version": str,
    },
    "tachyon_simulate": {
        "chain_id": str,
        "rpc_url": str,
        "from": str,
        "to": str,
        "data": str,
        "value": str,
        "block": str,
        "trace": bool,
    },
    "tachyon_deploy": {
        "intent": str,
        "idempotency_key": str,
        "chain_id": str,
        "project_id": str,
        "contract": str,
        "constructor_args": list,
        "create2": dict,
        "from": str,
        "capability_token": str,
        "spend_cap_wei": str,
        "wallet_token": str,
    },
    "tachyon_call": {
        "chain_id": str,
        "rpc_url": str,
        "from": str,
        "to": str,
        "data": str,
        "method": str,
        "args": list,
        "abi": list,
        "contract": str,
        "project_id": str,
        "value": str,
        "simulate_only": bool,
        "capability_token": str,
        "spend_cap_wei": str,
        "wallet_token": str,
    },
    "tachyon_chain_list": {},
    "tachyon_chain_register": {
        "id": str,
        "name": str,
        "rpc_url": str,
        "chain_id": int,
        "preset": str,
        "explorer": str,
    },
    "tachyon_artifact_get": {"project_id": str, "name": str},
    "tachyon_registry_lookup": {"idempotency_key": str, "chain_id": str},
}
"""What each method reads, and of which type."""

EMPTY: dict[str, dict[str, Any]] = {
    "tachyon_compile": {"project_id": "", "artifacts": None},
    "tachyon_test": {"suites": None, "passed": 0, "failed": 0},
    "tachyon_simulate": {},
    "tachyon_deploy": {"address": "", "idempotency_key": "", "chain_id": "", "contract": ""},
    "tachyon_call": {},
    "tachyon_chain_list": {"chains": None},
    "tachyon_chain_register": {"id": "", "name": "", "chain_id": 0},
    "tachyon_artifact_get": {"artifact": {"name": "", "abi": None, "bytecode": ""}},
    "tachyon_registry_lookup": {"found": False},
}
"""The data of a failure."""

# --- what it can play instead of its answer ---------------------------------------------------------------


def answers(data: Any) -> Play:
    """A success with this data."""
    return says({"ok": True, "data": data})


def fails(code: str, message: str = "it has failed", **more: Any) -> Play:
    """A failure of the engine's own; `more`: retry, details."""
    return says(
        {"ok": False, "data": {}, "error": {"code": code, "message": message, "retry": False, **more}}
    )


def says(envelope: Any) -> Play:
    """Any JSON in the place of the envelope."""
    return {"play": "says", "envelope": envelope}


def refuses(code: int, message: str) -> Play:
    """An error of JSON-RPC; over stdio its message alone gets through, as the text of a failed tool."""
    return {"play": "refuses", "code": code, "message": message}


def waits() -> Play:
    """The usual answer, once it is asked to go on."""
    return {"play": "waits"}


def pauses(seconds: float) -> Play:
    """The usual answer, after a time."""
    return {"play": "pauses", "seconds": seconds}


def drops() -> Play:
    """No answer and nothing done: the connection is reset, the process kills itself."""
    return {"play": "drops"}


def loses() -> Play:
    """It is done, and the connection or the process ends before the answer."""
    return {"play": "loses"}


def cuts() -> Play:
    """It is done, and the connection or the process ends in the middle of the answer."""
    return {"play": "cuts"}


def writes(before: str = "", instead: str = "", errors: int = 0) -> Play:
    """Over stdio: lines before the answer, or in its place; so many bytes on stderr before that."""
    return {"play": "writes", "before": before, "instead": instead, "errors": errors}


# --- a small believable engine ----------------------------------------------------------------------------

COUNTER_SOURCE = """// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
contract Counter {
    uint256 public value;
    constructor(uint256 v) { value = v; }
    function set(uint256 v) external payable { require(v != 13, "unlucky"); value = v; }
}
"""
COUNTER_RUNTIME = (
    "6080604052600436106025575f3560e01c80633fa4f24514602957806360fe47b114604d575b5f5ffd5b3480156033575f5ffd5b50"
    "603b5f5481565b60405190815260200160405180910390f35b605c6058366004609f565b605e565b005b80600d03609b57604051"
    "62461bcd60e51b8152602060048201526007602482015266756e6c75636b7960c81b604482015260640160405180910390fd5b5f"
    "55565b5f6020828403121560ae575f5ffd5b503591905056"
)
COUNTER_CODE = (
    "6080604052348015600e575f5ffd5b50604051610108380380610108833981016040819052602b916031565b5f556047565b5f6020"
    "82840312156040575f5ffd5b5051919050565b60b5806100535f395ff3fe"
) + COUNTER_RUNTIME
UINT = {"internalType": "uint256", "name": "v", "type": "uint256"}
COUNTER_ABI: list[dict[str, Any]] = [
    {"inputs": [UINT], "stateMutability": "nonpayable", "type": "constructor"},
    {"inputs": [UINT], "name": "set", "outputs": [], "stateMutability": "payable", "type": "function"},
    {
        "inputs": [],
        "name": "value",
        "outputs": [{**UINT, "name": ""}],
        "stateMutability": "view",
        "type": "function",
    },
]
VALUE, SET = "0x3fa4f245", "0x60fe47b1"  # the selectors
UNLUCKY = 13


def artifact(name: str = "Counter", **other: Any) -> dict[str, Any]:
    """An artifact as the engine has it: that of the source above, compiled by solc, but for `other`."""
    compiler = {"version": "0.8.30", "optimizer": {"enabled": True, "runs": 200}}
    return {
        "name": name,
        "path": f"src/{name}.sol",
        "abi": COUNTER_ABI,
        "bytecode": "0x" + COUNTER_CODE,
        "deployedBytecode": "0x" + COUNTER_RUNTIME,
        "compiler": compiler,
        **other,
    }


def hash_of(number: int) -> str:
    """The hash of the transaction of this number."""
    return f"0x{number:064x}"


class Failure(Exception):
    """The engine's own."""

    def __init__(self, code: str, message: str, retry: bool = False, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "retry": retry}
        self.data = data


class Engine:
    """What an engine has and does. `kept` is what outlives it, plain JSON."""

    def __init__(self, kept: dict[str, Any] | None = None, rpc_url: str = NO_NODE) -> None:
        features = ["debug_trace"]
        self.chains: list[dict[str, Any]] = [
            {"id": CHAIN, "name": "Anvil", "rpc_url": rpc_url, "chain_id": NUMBER, "features": features},
            {"id": OTHER_CHAIN, "name": "Another", "rpc_url": NO_NODE, "chain_id": OTHER_NUMBER},
        ]
        artifacts = {f"{PROJECT}:Counter": artifact()}
        self.kept: dict[str, Any] = kept or {
            "artifacts": artifacts,
            "deployments": {},
            "values": {},
            "sent": 0,
        }

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Do what was asked, and return the envelope."""
        try:
            return {"ok": True, "data": getattr(self, "_" + method.removeprefix("tachyon_"))(params)}
        except Failure as failure:
            return {"ok": False, "data": failure.data or EMPTY[method], "error": failure.error}

    def _compile(self, params: dict[str, Any]) -> dict[str, Any]:
        sources = params.get("sources") or {"src/Counter.sol": COUNTER_SOURCE}
        digest = hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()
        project = params.get("project_id") or f"src-{digest[:12]}"
        names = re.findall(r"^contract (\w+)", "\n".join(sources.values()), re.MULTILINE)
        found = [artifact(name) for name in names if name in (params.get("targets") or names)]
        self.kept["artifacts"] |= {f"{project}:{each['name']}": each for each in found}
        return {"project_id": project, "artifacts": found or None}

    def _test(self, params: dict[str, Any]) -> dict[str, Any]:
        case = {"name": "test_it()", "status": "Success", "gas": 3000, "duration": "1ms"}
        suite = {"file": "test/Counter.t.sol", "passed": 1, "failed": 0, "skipped": 0, "cases": [case]}
        return {"suites": [suite], "passed": 1, "failed": 0}

    def _chain_list(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"chains": self.chains, "active_chain_id": CHAIN}

    def _chain_register(self, params: dict[str, Any]) -> dict[str, Any]:
        chain = {**params, "features": ["debug_trace"]}
        self.chains = [each for each in self.chains if each["id"] != params["id"]] + [chain]
        return chain

    def _artifact_get(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"artifact": self._artifact(params.get("project_id"), params["name"])}

    def _artifact(self, project: str | None, name: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.kept["artifacts"].get(f"{project or PROJECT}:{name}")
        if found is None:
            raise Failure("ARTIFACT_NOT_FOUND", f"no artifact {name}")
        return found

    def _chain(self, asked: str | None) -> str:
        for each in self.chains:
            if (asked or CHAIN) in (each["id"], str(each["chain_id"])):
                return str(each["id"])
        raise Failure("CHAIN_NOT_FOUND", f"no chain {asked}")

    def _registry_lookup(self, params: dict[str, Any]) -> dict[str, Any]:
        found = self.kept["deployments"].get(f"{params['idempotency_key']}:{params['chain_id']}")
        if found is None:
            return {"found": False}
        return {
            "found": True,
            **{name: found[name] for name in ("address", "tx_hash", "contract")},
            "confirmed": True,
        }

    def _deploy(self, params: dict[str, Any]) -> dict[str, Any]:
        key = f"{params['idempotency_key']}:{params['chain_id']}"
        if (known := self.kept["deployments"].get(key)) is not None:
            return {**known, "existing": True}
        self._artifact(params.get("project_id"), params["contract"])
        self._chain(params["chain_id"])
        number = self._send()
        address = f"0x{'5' * 20}{number:020d}"
        made = {name: params[name] for name in ("idempotency_key", "chain_id", "contract")}
        arguments = params.get("constructor_args") or ["0"]
        self.kept["values"][address] = int(arguments[0]) if str(arguments[0]).isdecimal() else 0
        self.kept["deployments"][key] = {"address": address, "tx_hash": hash_of(number), **made}
        return dict(self.kept["deployments"][key])

    def _send(self) -> int:
        self.kept["sent"] += 1
        return int(self.kept["sent"])

    def _simulate(self, params: dict[str, Any]) -> dict[str, Any]:
        self._chain(params.get("chain_id"))
        data = str(params.get("data", "0x"))
        if data.startswith(SET) and int(data[10:], 16) == UNLUCKY:
            text = "execution reverted: unlucky"
            raise Failure("SIMULATE_FAILED", text, data={"revert": text})
        known = self.kept["values"].get(params["to"])
        word = f"{known:064x}" if known is not None and data == VALUE else ""
        return {"result": "0x" + word, "gas_estimate": 43_000}

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        data = str(params.get("data", "0x"))
        if "method" in params:
            arguments = [int(each) for each in params.get("args") or [] if str(each).isdecimal()]
            selector = VALUE if params["method"].startswith("value") else SET
            data = selector + "".join(f"{each:064x}" for each in arguments)
        if params.get("simulate_only"):
            return {"result": self._simulate({**params, "data": data})["result"]}
        self._chain(params.get("chain_id"))
        if data.startswith(SET) and data[10:]:
            self.kept["values"][params["to"]] = int(data[10:], 16)
        return {"tx_hash": hash_of(self._send())}


def misread(method: str, params: Any) -> tuple[int, str] | None:
    """The error of JSON-RPC for what cannot be read; None where all can."""
    if method not in WIRE:
        return -32601, f"there is no {method}"
    if not isinstance(params, dict):
        return -32602, "cannot read params: expected an object"
    for name, value in params.items():
        kind = WIRE[method].get(name)
        is_right = kind is None or value is None or isinstance(value, kind)
        if not is_right or (kind is int and isinstance(value, bool)):
            return -32602, f"cannot read {name}: {json.dumps(value)[:80]} has a wrong type"
    return None


# --- over stdio -------------------------------------------------------------------------------------------


class StdioEngine:
    """Tells the stand-ins that a server starts what to play, and says what they were asked: by files in a
    folder."""

    def __init__(self, folder: Any) -> None:
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        _write(self.folder, "script.json", {})

    @property
    def setting(self) -> str:
        """The engine as a setting names it."""
        return f"stdio:{shlex.join([sys.executable, os.path.abspath(__file__), '--stdio', self.folder])}"

    def on(self, method: str, *plays: Play) -> None:
        """Play these for the next requests of a method; "initialize" is one, too."""
        script = _read(self.folder, "script.json", {})
        script.setdefault(method, []).extend(plays)
        _write(self.folder, "released", False)
        _write(self.folder, "script.json", script)

    def release(self) -> None:
        """Have those that wait go on, and all that will until the next `on`."""
        _write(self.folder, "released", True)

    def forget(self) -> None:
        """Forget what they were asked, and what they have yet to play."""
        _write(self.folder, "script.json", {})
        with open(os.path.join(self.folder, "asked"), "w"):
            pass

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What all of them were asked so far: pid, method, params, length of the line."""
        path = os.path.join(self.folder, "asked")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            *lines, _ = file.read().split("\n")  # what has no end is still being written
        return [json.loads(line) for line in lines]

    def methods(self) -> list[str]:
        """The verbs that they were asked for, in order."""
        return [each["method"] for each in self.asked if each["method"].startswith("tachyon_")]

    def pids(self) -> list[int]:
        """Their processes, in the order in which they were asked first."""
        return list(dict.fromkeys(each["pid"] for each in self.asked))


def _read(folder: str, name: str, default: Any) -> Any:
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return default


def _write(folder: str, name: str, value: Any) -> None:
    """In one step: a reader finds all of it or what was there before."""
    path = os.path.join(folder, name)
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(f"{path}.{os.getpid()}", path)


class StdioProcess:
    """The stand-in's side: reads a line, plays or answers, and only then reads the next."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        self._engine = Engine(_read(folder, "kept.json", None))

    def run(self) -> None:
        while line := sys.stdin.buffer.readline(MOST_LINE + 1):
            if len(line) > MOST_LINE:
                raise SystemExit("a line is too long")
            if line.strip():
                self._take(line)

    def _take(self, line: bytes) -> None:
        message = json.loads(line)
        method, params = message["method"], message.get("params") or {}
        if method == "tools/call":
            method, params = params["name"], params.get("arguments") or {}
        with open(os.path.join(self._folder, "asked"), "a", encoding="utf-8") as file:
            note = {"pid": os.getpid(), "method": method, "params": params, "length": len(line)}
            file.write(json.dumps(note) + "\n")
        if "id" in message and method != "ping":  # which it never answers
            self._perform(self._next_play(method), message["id"], method, params)

    def _next_play(self, method: str) -> Play:
        with open(os.path.join(self._folder, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            script = _read(self._folder, "script.json", {})
            if not script.get(method):
                return {"play": "usual"}
            play: Play = script[method].pop(0)
            _write(self._folder, "script.json", script)
        return play

    def _perform(self, play: Play, id: Any, method: str, params: dict[str, Any]) -> None:
        kind = play["play"]
        if kind == "drops":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "waits":
            self._wait()
        elif kind == "pauses":
            time.sleep(play["seconds"])
        elif kind == "writes":
            sys.stderr.write("x" * play["errors"])
            sys.stdout.write(play["before"] + play["instead"])
        result = self._result(play, method, params)
        text = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n"
        if kind == "cuts":
            sys.stdout.write(text[: len(text) // 2])
        elif kind != "loses" and not play.get("instead"):
            sys.stdout.write(text)
        sys.stdout.flush()
        if kind in ("cuts", "loses"):
            os._exit(1)

    def _wait(self) -> None:
        deadline = time.monotonic() + SECONDS
        while not _read(self._folder, "released", False) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _result(self, play: Play, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            server = {"name": "standin", "version": "0"}
            return {"protocolVersion": "2024-11-05", "serverInfo": server, "capabilities": {"tools": {}}}
        if method == "tools/list":
            return {"tools": [{"name": each, "inputSchema": {"type": "object"}} for each in WIRE]}
        if play["play"] == "says":
            return _as_text(json.dumps(play["envelope"]))
        refusal = (play["code"], play["message"]) if play["play"] == "refuses" else misread(method, params)
        if refusal is not None:
            return {**_as_text(refusal[1]), "isError": True}
        envelope = self._engine.answer(method, params)
        if method in ("tachyon_compile", "tachyon_deploy", "tachyon_call"):
            _write(self._folder, "kept.json", self._engine.kept)
        return _as_text(json.dumps(envelope))


def _as_text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def main(way: str, *arguments: str) -> None:
    if way == "--stdio":
        StdioProcess(*arguments).run()
        return
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from support.standin_http import serve_by_hand

    serve_by_hand(*map(int, arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
