"""Holds every line that a server sends, in whatever test, against the schema of the version it is sent in.

    recorder = Recorder(folder_of_the_schemas)
    line = recorder.conversation("a name")
    line.sent(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')        # bytes, cut anywhere
    line.received(b'{"jsonrpc":"2.0","id":1,"result":[]}\\n')
    assert recorder.violations

`conftest.py` makes the one that sees all, and puts it behind `fastrpc.testing.Client` and `stdio.serve`; a
run for which it cannot be made fails. A result is held against its method's type, and a request or
notification against its own; besides, no object may carry a member that its version does not know
(`methods.json`): the schemas alone would let it pass. The
`"id":null` of an answer to an unreadable message is excepted. Each schema is compiled once, by the first
line that needs it; a line costs some ten microseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import jsonschema_rs

from support import published
from support.protocol import SESSION_VERSIONS, STATELESS

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
ASKS = ("tools/call", "prompts/get", "resources/read")  # what may be answered by a question in 2026-07-28
RETIRED = (-32002, -32042)  # codes that 2026-07-28 forbids
OWN_ERRORS = {
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}
ENTRIES = {
    "tools": "Tool",
    "resources": "Resource",
    "resourceTemplates": "ResourceTemplate",
    "prompts": "Prompt",
}
OBJECTS = {"serverInfo": "Implementation", "capabilities": "ServerCapabilities"}
VENDORS = "notifications/x-"
MOST_VIOLATIONS = 20

Problem = str


def is_ours(member: str) -> bool:
    """Whether a member is one that MCP has to know: those of others, which a proxy carries on, begin with
    ``x-`` in the tests."""
    return not member.startswith("x-")


class Schema:
    """One version's schema: each check returns what is wrong, or None."""

    def __init__(self, folder: str, version: str) -> None:
        with open(os.path.join(folder, f"{version}.json"), encoding="utf-8") as file:
            self.document = json.load(file)
        with open(os.path.join(folder, "methods.json"), encoding="utf-8") as file:
            self.methods = json.load(file)[version]
        self.version = version
        self.place = "definitions" if "definitions" in self.document else "$defs"
        self.types: dict[str, Any] = self.document[self.place]
        self._validators: dict[tuple[str, ...], Any] = {}

    def validator(self, *names: str, result: str = "") -> Any:
        """Return the validator of a message that is of all these types, with a result of that type."""
        key = (*names, result)
        found = self._validators.get(key)
        if found is None:
            parts: list[Any] = [self.ref(name) for name in names]
            if result:
                parts.append({"properties": {"result": self.ref(result)}})
            schema = {"allOf": parts, self.place: self.types}
            if "$schema" in self.document:
                schema["$schema"] = self.document["$schema"]
            found = self._validators[key] = jsonschema_rs.validator_for(schema, validate_formats=True)
        return found

    def ref(self, name: str) -> dict[str, str]:
        return {"$ref": f"#/{self.place}/{name}"}

    def check(self, name: str, value: Any) -> None:
        """Raise ValidationError unless a value is of a type."""
        self.validator(name).validate(value)

    def problem(self, validator: Any, message: Any) -> Problem | None:
        """Say what a validator has against a message."""
        if validator.is_valid(message):
            return None
        worst = [
            f"{'/'.join(map(str, e.instance_path))}: {e.message}"[:600]
            for e in validator.iter_errors(message)
        ]
        return "; ".join(worst[:3])

    # --- the kinds of message ---

    def result(self, message: dict[str, Any], method: str | None) -> Problem | None:
        """Check the answer to a request of `method`; None: no one knows what was asked."""
        envelope = "JSONRPCResultResponse" if "JSONRPCResultResponse" in self.types else "JSONRPCResponse"
        name = self.result_type(method, message["result"])
        problem = self.problem(self.validator(envelope, result=name), message)
        return problem or self.foreign_members(name, message["result"])

    def result_type(self, method: str | None, result: Any) -> str:
        asked = self.methods["ClientRequest"].get(method)
        if asked is None:
            return "Result"
        if method in ASKS and isinstance(result, dict) and result.get("resultType") == "input_required":
            return "InputRequiredResult"
        if method == "tools/call" and isinstance(result, dict) and result.get("resultType") == "task":
            return "Result"  # of the extension for tasks, which has another schema
        name = asked["def"].removesuffix("Request") + "Result"
        return name if name in self.types else "EmptyResult"

    def foreign_members(self, name: str, result: Any) -> Problem | None:
        """Name the members of a result, and of what it lists, that this version does not know."""
        known = self.methods["results"].get("Result" if name == "EmptyResult" else name)
        if known is None or name == "Result":
            return None
        found = [f"{name}.{member}" for member in result if member not in known["props"] and is_ours(member)]
        for member, kind in ENTRIES.items():
            for entry in result.get(member, ()):
                found += self.unknown(kind, entry)
        for member, kind in OBJECTS.items():
            found += self.unknown(kind, result.get(member, {}))
        return (
            f"members that {self.version} does not know: {', '.join(sorted(set(found)))}" if found else None
        )

    def unknown(self, kind: str, value: dict[str, Any]) -> list[str]:
        properties = self.types[kind]["properties"]
        return [f"{kind}.{member}" for member in value if member not in properties and is_ours(member)]

    def error(self, message: dict[str, Any]) -> Problem | None:
        name = "JSONRPCErrorResponse" if "JSONRPCErrorResponse" in self.types else "JSONRPCError"
        error = message["error"]
        code = error.get("code") if isinstance(error, dict) else None
        if self.version == STATELESS:
            if code in RETIRED:
                return f"the code {code} must not be sent in {STATELESS}"
            name = OWN_ERRORS.get(code, name) if isinstance(code, int) else name
        if message.get("id", "") is None:
            message = {**message, "id": 0}  # an unreadable message: JSON-RPC wants null, MCP has no word
        return self.problem(self.validator(name), message)

    def asked(self, message: dict[str, Any], side: str) -> Problem | None:
        """Check a request (side: ServerRequest) or a notification (ServerNotification) of the server's."""
        method = message["method"]
        known = self.methods[side].get(method) if isinstance(method, str) else None
        if known is None:
            if side == "ServerNotification" and str(method).startswith(VENDORS):
                return self.problem(
                    self.validator("JSONRPCNotification"), message
                )  # a server's behind a proxy
            return f"{self.version} has no {side} {method!r}"
        envelope = "JSONRPCRequest" if side == "ServerRequest" else "JSONRPCNotification"
        problem = self.problem(self.validator(envelope, known["def"]), message)
        if problem is not None:
            return problem
        if not known["props"]:  # params of several forms: the schema alone tells
            return None
        params = message.get("params", {})
        foreign = [name for name in params if name not in (*known["props"], "_meta") and is_ours(name)]
        return (
            f"{method}: members that {self.version} does not know: {', '.join(foreign)}" if foreign else None
        )


class Recorder:
    """Keeps the schemas, and what was found wrong since it was last asked.

    Raises FileNotFoundError where the folder lacks the schema of a version: it would judge nothing.
    """

    def __init__(self, folder: str) -> None:
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"no {os.path.basename(folder)} in {os.path.dirname(folder)}")
        for name in ("methods", *published.versions()):
            if not os.path.isfile(path := os.path.join(folder, f"{name}.json")):
                raise FileNotFoundError(f"there is no {path}")
        self.folder = folder
        self.violations: list[str] = []
        self.lines = 0
        self._schemas: dict[str, Schema] = {}

    def schema(self, version: str) -> Schema:
        if version not in self._schemas:
            self._schemas[version] = Schema(self.folder, version)
        return self._schemas[version]

    def conversation(self, name: object) -> Conversation:
        return Conversation(self, str(name))

    def replay(self, path: str) -> None:
        """Judge a conversation from what ``fastrpc serve --trace`` has written."""
        conversation = self.conversation(os.path.basename(path))
        with open(path, "rb") as file:
            for line in file:
                direction, _, message = line.split(b" ", 2)
                (conversation.sent if direction == b"<" else conversation.received)(message)

    def report(self, name: str, problem: str, line: bytes) -> None:
        if len(self.violations) < MOST_VIOLATIONS:
            self.violations.append(f"{name}: {problem}\n    {line[:600].decode('utf-8', 'replace')}")

    def take_violations(self) -> list[str]:
        found, self.violations = self.violations, []
        return found


class Conversation:
    """One connection, seen from the client: the bytes of both directions as they pass."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder = recorder
        self.name = name
        self.version: str | None = None  # what `initialize` has agreed on
        self._asked: dict[str, tuple[str, str | None]] = {}  # by id: method and, from its envelope, version
        self._tokens: dict[str, str | None] = {}  # by progress token: the version of its request
        self._sent = Lines(self._client_line)
        self._received = Lines(self._server_line)

    def sent(self, data: bytes) -> None:
        self._sent.feed(data)

    def received(self, data: bytes) -> None:
        self._received.feed(data)

    # --- what the client says: only what is needed to judge the answers ---

    def _client_line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        for element in message if isinstance(message, list) else [message]:
            if isinstance(element, dict) and isinstance(element.get("method"), str) and "id" in element:
                self._remember(element)

    def _remember(self, request: dict[str, Any]) -> None:
        method = request["method"]
        params = request.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        meta = meta if isinstance(meta, dict) else {}
        version = STATELESS if VERSION_KEY in meta or method == "server/discover" else None
        self._asked[key_of(request["id"])] = method, version
        if "progressToken" in meta:
            self._tokens[key_of(meta["progressToken"])] = version

    # --- what the server says ---

    def _server_line(self, line: bytes) -> None:
        self.recorder.lines += 1
        try:
            message = json.loads(line, parse_constant=refuse)
        except RecursionError:
            return
        except ValueError as error:
            self.recorder.report(self.name, f"no JSON: {error}", line)
            return
        if isinstance(message, list) and not message:
            self.recorder.report(self.name, "an empty batch", line)
        for element in message if isinstance(message, list) else [message]:
            problem = self._judge(element)
            if problem is not None:
                self.recorder.report(self.name, problem, line)

    def _judge(self, message: Any) -> Problem | None:
        if not isinstance(message, dict):
            return "no object"
        if "method" in message:
            side = "ServerRequest" if "id" in message else "ServerNotification"
            version = self._version_of(message)
            return None if published.lacks(version) else self.recorder.schema(version).asked(message, side)
        if ("result" in message) == ("error" in message):
            return "neither method nor result nor error, or both of the last two"
        method, version = self._asked.pop(key_of(message.get("id")), (None, None))
        if method == "initialize" and isinstance(message.get("result"), dict):
            self.version = message["result"].get("protocolVersion", self.version)
            if self.version not in SESSION_VERSIONS:
                return f"initialize is answered with protocolVersion {self.version!r}"
        version = version or self.version or SESSION_VERSIONS[-1]
        if published.lacks(version):
            return None
        schema = self.recorder.schema(version)
        return schema.error(message) if "error" in message else schema.result(message, method)

    def _version_of(self, message: dict[str, Any]) -> str:
        """The version in which the server speaks by itself: that of the request it belongs to."""
        own = self.version or STATELESS
        params = message.get("params")
        if "id" in message or not isinstance(params, dict):
            return own
        if "progressToken" in params:
            return self._tokens.get(key_of(params["progressToken"])) or own
        return STATELESS if SUBSCRIPTION_KEY in (params.get("_meta") or {}) else own


class Lines:
    """Cuts bytes into lines."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        self._take = take
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        end = data.rfind(b"\n")
        if end < 0:
            self._rest += data
            return
        lines = bytes(self._rest) + data[:end]
        self._rest = bytearray(data[end + 1 :])
        for line in lines.split(b"\n"):
            if line.strip():
                self._take(line)


def key_of(id: Any) -> str:
    """Return an id, or a token, as a text: 1 and "1" are two."""
    return json.dumps(id)


def refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
