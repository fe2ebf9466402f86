"""What the fuzzer holds the core to: the plain-Python twin, in each of the ways by which messages come.

`judge(messages)` sends a conversation to the core as bodies of POSTs (`Connection.receive`), by the straight
way of HTTP (`http_body.receive_named`), as a stream of lines in random pieces (`Stream`), and to a whole
server. It raises `Mismatch` where a tool is called with other arguments than the message holds, an answer
has another id or value, a message is answered twice or not at all, or an answer is more than one line.
What only the sanitizers can see ends the process. Costs about a millisecond a kilobyte, the twin's.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import random
import struct
import tempfile
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import variants
from support import twin
from variants import ABSENT

from fastrpc import Server
from fastrpc._core.connection import Connection
from fastrpc._core.encoder import OBJECT_FORM, TEXT_FORM, WRAPPED_FORM
from fastrpc._core.http_body import receive_named
from fastrpc._core.message import Message
from fastrpc._core.plan import Plan
from fastrpc._core.stream import END, Stream

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
LOG_KEY = "io.modelcontextprotocol/logLevel"
SESSION_SUFFIX = b'"}],"isError":false}}\n'
STATELESS_SUFFIX = b'"}],"resultType":"complete"}}\n'
NOTIFICATION = b'{"jsonrpc":"2.0","method":'
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}'
BATCH_VERSION = "2025-03-26"
RECORDED = ("tools/call", "resources/read", "prompts/get")  # whose calls have a record each
TURNS = 10_000  # of a loop: more than any conversation needs
OUTPUT_CAPACITY = 64 * 1024  # of a new output: answers at its edge are of interest
PLAIN = {
    "tool": {"a": "json", "b": "json", "text": "json"},
    "typed": {
        "s": "str",
        "n": "int",
        "x": "float",
        "flag": "bool",
        "o": "object",
        "l": "array",
        "maybe": "str",
    },
    "wide": {f"p{number}": "json" for number in range(16)},
}
REFUSAL = "a: expected what fits"
FORMS = {"tool": TEXT_FORM, "typed": OBJECT_FORM, "wide": WRAPPED_FORM}


class Mismatch(Exception):
    """The core and the twin differ. Its text says where, with the message."""


def expect(holds: object, what: str, message: bytes, *found: object) -> None:
    if not holds:
        details = "".join(f"\n  {each!r:.2000}" for each in found)
        raise Mismatch(f"{what}\n  message {message!r:.4000}{details}")


def difference(left: Any, right: Any) -> bool:
    """Whether two JSON values differ, in type too, doubles to the last bit."""
    if type(left) is not type(right):
        return True
    if isinstance(left, float):
        return struct.pack("<d", left) != struct.pack("<d", right)
    if isinstance(left, dict):
        return left.keys() != right.keys() or any(difference(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) != len(right) or any(map(difference, left, right))
    return bool(left != right)


# --- a connection with tools, and what happens behind it --------------------------------------------------


class Recorder:
    """A connection with three inline tools; keeps what the tools and the dispatcher were handed."""

    def __init__(self) -> None:
        self.connection = Connection((SESSION_SUFFIX,) * 4, (STATELESS_SUFFIX,) * 4)
        self.connection.dispatcher = self.connection.delegate = self.responses = self
        self.connection.open = self.connection.structured = True
        self.connection.take_plans({name: self.plan(name) for name in PLAIN})
        self.connection.take_list(b'{"tools":[]}', True)
        self.connection.take_list(b'{"tools":[]}', False)
        self.events: list[tuple[str, Any]] = []
        """What has happened: ("call", (tool, arguments)), ("misfit", (tool, arguments)) for those that do not
        fit plainly, or ("dispatch", (kind, id, method, params))."""

    def plan(self, name: str) -> Plan:
        kinds = PLAIN[name]

        def function(*values: Any) -> Any:
            arguments = dict(zip(kinds, values, strict=True))
            self.events.append(("call", (name, arguments)))
            return result_of(name, arguments)

        def binder(arguments: dict[str, Any]) -> list[Any] | str:
            self.events.append(("misfit", (name, arguments)))
            if not fits_plainly(arguments, kinds):
                return REFUSAL
            return [bound(arguments, parameter, kind) for parameter, kind in kinds.items()]

        tool = SimpleNamespace(signature=SimpleNamespace(binder=binder))
        parameters = [(parameter, kind, ABSENT, parameter == "maybe") for parameter, kind in kinds.items()]
        return Plan(tool, name, function, parameters, inline=True, adaptive=False, form=FORMS[name])

    # --- in the dispatcher's place ---

    def dispatch(self, message: Message) -> None:
        kind = message.kind
        params = message.params if kind in ("request", "notification") else None
        said = (kind, message.id, message.method, params, message.error_code, message.answered_id)
        self.events.append(("dispatch", said))
        if kind in ("broken", "invalid"):
            expect(isinstance(message.error, str) and message.error, "an error without words", b"")
        if kind == "batch":
            self.events.append(("elements", message.elements()))

    def call_ended(self, id: bytes, tool: Any, result: Any, stateless: bool) -> None:
        expect(result is None, "a plain value was not written", id, result)
        self.connection.output.line(
            b'{"jsonrpc":"2.0","id":%b,"none":%b}' % (id, b"01"[stateless : stateless + 1])
        )

    def line_too_long(self) -> None:
        self.events.append(("too long", None))

    def on_client_idle(self) -> bool:
        return False

    def take(self) -> tuple[list[tuple[str, Any]], bytes]:
        """Return what has happened and what was answered since the last time."""
        events, self.events = self.events, []
        return events, self.connection.output.take()


def result_of(name: str, arguments: dict[str, Any]) -> Any:
    """What the tools return: the first argument alone, or all of them."""
    return arguments["a"] if name == "tool" else arguments


@functools.lru_cache(maxsize=1024)
def verdict_of(data: bytes) -> twin.Verdict:
    """What the twin says of a message, which comes by several ways."""
    return twin.judge(data)


# --- one message ------------------------------------------------------------------------------------------


def meaning_of(meta: Any) -> str | None:
    """The era that a `_meta` puts its request into: "modern", "legacy"; None if the dispatcher judges it."""
    if not isinstance(meta, dict):
        return None
    if VERSION_KEY not in meta:
        return "legacy"
    right = meta[VERSION_KEY] == "2026-07-28" and isinstance(meta.get(CAPABILITIES_KEY), dict)
    right = right and isinstance(meta.get(CLIENT_KEY, {}), dict) and LOG_KEY not in meta
    return "modern" if right else None


def check(data: bytes, events: list[tuple[str, Any]], output: bytes) -> None:
    """Hold what one message has come to against what the twin says of it."""
    verdict = verdict_of(data)
    if events and events[0][0] == "dispatch":
        check_dispatched(data, verdict, events, output)
        return
    expect(verdict.kind == "request", "what is no request was answered", data, verdict, events, output)
    params = verdict.params or {}
    era = meaning_of(params.get("_meta", {}))
    expect(era is not None, "a request that the dispatcher has to judge was answered", data, verdict, output)
    expect(output.count(b"\n") == 1 and output.endswith(b"\n"), "not one answer in one line", data, output)
    head = b'{"jsonrpc":"2.0","id":%b,' % (verdict.id or b"?")
    expect(output.startswith(head), "another id", data, output)
    if verdict.method == "tools/list":
        expect(not events and "cursor" not in params, "a list", data, events)
        expect(output == head + b'"result":{"tools":[]}}\n', "another list", data, output)
        return
    if verdict.method == "ping":
        expect(not events and era == "legacy", "a ping", data, events)
        expect(output == head + b'"result":{}}\n', "another answer to a ping", data, output)
        return
    expect(events and verdict.method == "tools/call", "no call", data, events)
    name, arguments = events[0][1]
    expect(params.get("name") == name, "another tool", data, name)
    given = params.get("arguments", {})
    if events[0][0] == "misfit":  # or of two arguments of a name the last one fits, which counts
        expect(not difference(arguments, given), "other arguments", data, arguments, given)
        events = events[1:]
        if not fits_plainly(given, PLAIN[name]):
            said = json.loads(output)["result"]["content"][0]["text"]
            expect(not events and said == REFUSAL, "what does not fit was not refused", data, events, output)
            return
    expect(len(events) == 1, "not one call", data, events)
    name, arguments = events[0][1]
    wanted = {each: bound(given, each, kind) for each, kind in PLAIN[name].items()}
    expect(not difference(arguments, wanted), "other arguments", data, arguments, wanted)
    check_answer(data, name, output, result_of(name, arguments), era == "modern")


JSON_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "object": (dict,),
    "array": (list,),
}


def fits_plainly(given: dict[str, Any], kinds: dict[str, str]) -> bool:
    """Whether each argument is of the type of its parameter; none has to be there."""
    return all(
        kind == "json"
        or name not in given
        or type(given[name]) in JSON_TYPES[kind]
        or (name == "maybe" and given[name] is None)
        for name, kind in kinds.items()
    )


def bound(given: Any, name: str, kind: str) -> Any:
    """What a parameter is handed."""
    value = given.get(name, ABSENT)
    if name == "maybe" and value is None:
        return ABSENT
    return float(value) if kind == "float" and type(value) is int else value


def check_dispatched(
    data: bytes, verdict: twin.Verdict, events: list[tuple[str, Any]], output: bytes
) -> None:
    expect(output == b"", "answered, and dispatched too", data, output)
    kind, id, method, params, code, answered = events[0][1]
    has_id = kind in ("request", "invalid", "response", "broken")
    ours = twin.Verdict(kind, id if has_id else None, error_code=code, answered_id=answered)
    if kind in ("request", "notification"):
        ours = twin.Verdict(kind, id, method, params, code)
    expect(not difference(tuple(ours), tuple(verdict)), "another verdict", data, ours, verdict)
    if kind != "batch":
        expect(len(events) == 1, "dispatched more than once", data, events)
        return
    elements = events[1][1]
    values = [twin.parse(element) for element in elements]
    expect(not difference(values, twin.parse(data)), "other elements", data, elements)
    for element in elements:
        expect(element == element.strip(twin.WHITE_SPACE), "white space around an element", data, element)
        expect(element in data, "an element that is not in its batch", data, element)


def check_answer(data: bytes, name: str, output: bytes, result: Any, stateless: bool) -> None:
    answer = json.loads(output)
    if result is None:
        expect(answer.get("none") == stateless, "the era", data, output)
        return
    expect(("resultType" in answer["result"]) == stateless, "the era", data, output)
    (block,) = answer["result"]["content"]
    text = block["text"]
    if isinstance(result, str):
        expect(text == result, "another text", data, output, result)
        return
    expect(not difference(json.loads(text), result), "another value in the text", data, output, result)
    if name != "tool":
        wanted = {"result": result} if FORMS[name] == WRAPPED_FORM else result
        found = answer["result"].get("structuredContent")
        expect(not difference(found, wanted), "another structured value", data, output, wanted)


# --- the ways ---------------------------------------------------------------------------------------------


def judge_bodies(messages: list[bytes], chance: random.Random) -> None:
    """As an exchange hands bodies to its connection, answers at the edge of the output's memory at times."""
    recorder = Recorder()
    for data in messages:
        filling = b""
        if chance.random() < 0.2:
            filling = b"x" * (OUTPUT_CAPACITY - chance.choice([1, 20, 100, 500, chance.randint(1, 5000)]))
            recorder.connection.output.line(filling)
            filling += b"\n"
        recorder.connection.receive(data)
        events, output = recorder.take()
        check(data, events, output[len(filling) :])


def judge_named(messages: list[bytes], chance: random.Random) -> None:
    """As the fast path of HTTP does, whose head says what is in the body."""
    recorder = Recorder()
    for data in messages:
        verdict = verdict_of(data)
        params = verdict.params or {}
        name = params.get("name") if verdict.method == "tools/call" else ""
        method = chance.choice([verdict.method, verdict.method, verdict.method, "tools/call", "tools/list"])
        if not isinstance(name, str) or chance.random() < 0.1:
            name = "tool"
        told = ((method or "").encode(), name.encode())
        mine = receive_named(recorder.connection, data, *told)
        events, output = recorder.take()
        if not mine:
            expect(not events and not output, "not taken, and something has happened", data, events, output)
            continue
        expect(verdict.kind == "request" and method == verdict.method, "taken against its head", data, told)
        expect(meaning_of(params.get("_meta", {})) == "modern", "another era was taken", data)
        if method == "tools/call":
            expect(params.get("name") == name, "taken for another tool", data, told)
        check(data, events, output)


class Turns:
    """The loop of a stream that is pumped by hand."""

    def __init__(self) -> None:
        self.functions: list[Callable[[], object]] = []

    def call_soon(self, function: Callable[[], object]) -> None:
        self.functions.append(function)

    def add_reader(self, descriptor: int, function: Callable[[], object]) -> None:
        pass

    def remove_reader(self, descriptor: int) -> None:
        pass

    def run(self) -> None:
        while self.functions:
            self.functions.pop()()


def judge_stream(messages: list[bytes], chance: random.Random) -> None:
    """As stdio: one stream in random pieces says what its lines say one by one."""
    limit = chance.choice([twin.MAX_LINE, twin.MAX_LINE, 1000, 300, 100])
    if chance.random() < 0.8:  # else a message over many lines is that many broken ones
        messages = [message.replace(b"\n", b" ") for message in messages]
    data = b"\n".join(messages) + chance.choice([b"", b"\n"])
    single = Recorder()
    for line in twin.frames(data, limit):
        if line is None:
            single.line_too_long()
        else:
            single.connection.receive(line)
    expected, answers = single.take()
    streamed = Recorder()
    found = through_a_stream(streamed, data, limit, chance)
    expect(found == answers, "a stream is answered in another way than its lines", data, found, answers)
    expect(
        not difference([list(each) for each in streamed.events], [list(each) for each in expected]),
        "a stream is read in another way than its lines",
        data,
        streamed.events,
        expected,
    )


def through_a_stream(recorder: Recorder, data: bytes, limit: int, chance: random.Random) -> bytes:
    """Feed a stream in pieces; return what was answered."""
    out, into = os.pipe()
    ends: list[int] = []
    loop = Turns()
    with tempfile.TemporaryFile() as answers:
        try:
            os.set_blocking(out, False)
            stream = Stream(recorder.connection, out, answers.fileno(), limit)
            stream.attach(loop, ends.append)
            at = 0
            while at < len(data):
                size = chance.choice([1, 2, 7, 63, 64, 65, 200, 1000, 5000, 5000, 60_000, 0, 0])
                if size == 0:  # all but the newline
                    size = max(data.find(b"\n", at) - at, 1)
                at += os.write(into, data[at : at + min(size, 60_000)])
                stream.turn()
                loop.run()
        finally:
            os.close(into)
        stream.turn()
        loop.run()
        os.close(out)
        expect(ends == [END], "the stream has not ended", data[:200], ends)
        answers.seek(0)
        return answers.read()


# --- a whole server ---------------------------------------------------------------------------------------


class Visit:
    """A connection to a whole server, as bodies of POSTs reach it; with a loop, if the server needs one."""

    def __init__(
        self, app: Server, version: str | None, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.dispatcher = app.connect()
        self.connection = self.dispatcher.connection
        self.connection.call_in_loop = lambda function: function()
        if loop is not None:
            self.dispatcher.loop_runs(loop)
        if version is not None:
            self.dispatcher.adopt_version(version)

    @property
    def version(self) -> str | None:
        return self.dispatcher.session.version

    def send(self, data: bytes) -> bytes:
        """Send a message; return what has been said since the last time."""
        self.connection.receive(data)
        return self.connection.output.take()

    async def settle(self, data: bytes = b"") -> bytes:
        """Wait until nothing is in flight; return what has been said since the last time."""
        for _ in range(TURNS):
            if not self.dispatcher.requests.busy:
                return self.connection.output.take()
            await asyncio.sleep(0)
        raise Mismatch(f"still in flight after {TURNS} turns of the loop\n  message {data!r:.4000}")

    def close(self) -> None:
        self.dispatcher.close()


def judge_server(messages: list[bytes], version: str | None) -> list[bytes]:
    """A server as a POST's body reaches it: each message is answered as JSON-RPC has it, in one line.

    Return what was said to each.
    """
    visit = Visit(variants.plain().app, version)
    said = []
    try:
        for data in messages:
            said.append(visit.send(data))
            check_server(data, said[-1], visit.version)
    finally:
        visit.close()
    return said


def answers_in(output: bytes) -> list[bytes]:
    """The lines that are no notifications: those may be more from one server than from another."""
    return [line for line in output.split(b"\n")[:-1] if not line.startswith(NOTIFICATION)]


def check_server(data: bytes, output: bytes, version: str | None) -> None:
    verdict = verdict_of(data)
    expect(output[-1:] in (b"", b"\n"), "a line without its end", data, output)
    answers = []
    for line in output.split(b"\n")[:-1]:
        answer = read_answer(data, line)
        if isinstance(answer, list) or "method" not in answer.last():
            answers.append(answer)
    if verdict.kind == "batch" and version == BATCH_VERSION:
        expect(len(answers) <= 1, "more than one answer to a batch", data, output)
        return
    owed = verdict.kind in ("request", "broken", "invalid", "batch")
    expect(len(answers) == owed, "answered too often, or not", data, verdict, output)
    if owed:
        (answer,) = answers
        expect(id_of(answer) == (verdict.id or b"null"), "another id", data, verdict, output)
        error = twin.plain(answer).get("error")
        if error is not None:
            expect(error["code"] != -32603, "an internal error", data, output)
        if verdict.error_code:
            expect(error is not None and error["code"] == verdict.error_code, "another error", data, output)


def read_answer(data: bytes, line: bytes) -> Any:
    try:
        return twin.Parser(line).document()
    except twin.Broken as broken:
        raise Mismatch(f"an answer that is no JSON: {broken}\n  message {data!r}\n  {line!r}") from None


def id_of(answer: Any) -> bytes:
    return next(member.text for member in answer.members if member.key == "id")


# --- servers that are written in another way ----------------------------------------------------------------


async def judge_variant(
    messages: list[bytes], said: list[bytes], version: str | None, chance: random.Random
) -> None:
    """Tools of another shape, hooks, guards, observers: what a client gets is what the plain server said."""
    variant = variants.chosen(chance)
    try:
        await judge_alone(messages, said, version, variant)
        single = [data for data in messages if verdict_of(data).kind != "batch"]
        if chance.random() < 0.5:
            await judge_together(single, version, variant, chance)
        else:
            await judge_stdio(single, version, variant, chance)
    except Mismatch as mismatch:
        raise Mismatch(f"{mismatch}\n  {variant.kind}") from None
    finally:
        variant.take_records()


async def judge_alone(
    messages: list[bytes], said: list[bytes], version: str | None, variant: variants.Variant
) -> None:
    """One message after the other has been answered: the same answers, and a record of each call."""
    visit = Visit(variant.app, version, asyncio.get_running_loop())
    try:
        for data, wanted in zip(messages, said, strict=True):
            calls = calls_in(data, visit.version)
            output = visit.send(data) + await visit.settle(data)
            check_server(data, output, visit.version)
            # Of a batch whose calls wait, one may cancel another, or have its id.
            if not (variant.refuses or (variant.waits and verdict_of(data).kind == "batch")):
                found = answers_in(output)
                expect(
                    found == answers_in(wanted), "other answers than the plain server's", data, found, wanted
                )
            check_records(variant, calls, data)
    finally:
        visit.close()


def calls_in(data: bytes, version: str | None) -> int:
    """How many calls a message holds that are recorded."""
    verdict = verdict_of(data)
    if verdict.kind == "batch" and version == BATCH_VERSION:
        message = Message()
        message.read(data)
        return sum(verdict_of(element).method in RECORDED for element in requests_in(message.elements()))
    return verdict.kind == "request" and verdict.method in RECORDED


def requests_in(messages: list[bytes]) -> list[bytes]:
    return [data for data in messages if verdict_of(data).kind == "request"]


def check_records(variant: variants.Variant, calls: int, data: bytes) -> None:
    if variant.records is None:
        return
    records = variant.take_records()
    expect(variant.dropped_records() == 0, "a record did not fit", data)
    expect(len(records) == calls, f"not one record of each of {calls} calls", data, records)


async def judge_together(
    messages: list[bytes], version: str | None, variant: variants.Variant, chance: random.Random
) -> None:
    """Many in flight, some of them cancelled: none is answered twice, none but a cancelled one is not."""
    visit = Visit(variant.app, version, asyncio.get_running_loop())
    loose: set[bytes] = set()  # ids of what may go without an answer
    recent = b""
    output = b""
    try:
        for data in messages:
            verdict = verdict_of(data)
            output += visit.send(data)
            recent = (verdict.id or b"") if verdict.kind == "request" else recent
            if verdict.kind == "notification":
                loose |= cancelled_by(verdict, messages)
            if recent and chance.random() < 0.15:
                output += visit.send(CANCEL % recent)
                loose.add(recent)
            if chance.random() < 0.3:
                await asyncio.sleep(0)
        if chance.random() < 0.3:
            loose |= {verdict_of(data).id or b"null" for data in messages}
        else:
            output += await visit.settle()
    finally:
        visit.close()
    for _ in range(3):  # for what close() has cancelled
        await asyncio.sleep(0)
    output += visit.connection.output.take()
    check_counts(messages, output, loose)
    check_records(variant, sum(calls_in(data, None) for data in messages), b"\n".join(messages))


def cancelled_by(verdict: twin.Verdict, messages: list[bytes]) -> set[bytes]:
    """The ids that a cancellation of the conversation's own may mean."""
    if verdict.method != "notifications/cancelled":
        return set()
    wanted = (verdict.params or {}).get("requestId")
    ids = {verdict_of(data).id for data in messages}
    return {id for id in ids if id is not None and twin.parse(id) == wanted}


def check_counts(messages: list[bytes], output: bytes, loose: set[bytes]) -> None:
    """Each id is answered as often as it was sent; those of `loose` at most as often."""
    whole = b"\n".join(messages)
    owed = Counter(
        verdict.id or b"null"
        for verdict in map(verdict_of, messages)
        if verdict.kind in ("request", "broken", "invalid")
    )
    found: Counter[bytes] = Counter()
    for line in answers_in(output):
        answer = read_answer(whole, line)
        found[id_of(answer)] += 1
        error = twin.plain(answer).get("error")
        expect(error is None or error["code"] != -32603, "an internal error", whole, line)
    expect(not found - owed, "answered too often", whole, found - owed)
    missing = {id: count for id, count in (owed - found).items() if id not in loose}
    expect(not missing, "not answered", whole, missing)


async def judge_stdio(
    messages: list[bytes], version: str | None, variant: variants.Variant, chance: random.Random
) -> None:
    """As stdio: a stream in random pieces, while a loop runs; the lines lie in the read buffer meanwhile."""
    stream = b"".join(message.replace(b"\n", b" ") + b"\n" for message in messages)
    lines = [line for line in twin.frames(stream) if line is not None]
    said = b"".join(judge_server(lines, version))
    visit = Visit(variant.app, version)
    try:
        output = await through_stdio(visit, stream, chance)
    finally:
        visit.close()
    if variant.waits or variant.refuses:
        loose = {id for verdict in map(verdict_of, lines) for id in cancelled_by(verdict, lines)}
        check_counts(lines, output, loose)
    else:
        found = answers_in(output)
        expect(found == answers_in(said), "other answers over stdio", b"\n".join(lines), found, said)
    check_records(variant, sum(calls_in(data, None) for data in lines), b"\n".join(lines))


async def through_stdio(visit: Visit, data: bytes, chance: random.Random) -> bytes:
    """Feed a stream in pieces to a server in the loop; return what was answered."""
    out, into = os.pipe()
    ends: list[int] = []
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryFile() as answers:
        try:
            os.set_blocking(out, False)
            os.set_blocking(into, False)
            stream = Stream(visit.connection, out, answers.fileno(), twin.MAX_LINE)
            visit.dispatcher.loop_runs(loop)
            stream.attach(loop, ends.append)
            at = 0
            while at < len(data):
                size = chance.choice([1, 7, 64, 200, 1000, 5000, 5000, 60_000, 0])
                if size == 0:  # all but the newline
                    size = max(data.find(b"\n", at) - at, 1)
                try:
                    at += os.write(into, data[at : at + min(size, 60_000)])
                except BlockingIOError:
                    pass  # the pipe is full: the loop has to read
                for _ in range(chance.choice([1, 1, 2])):
                    await asyncio.sleep(0)
        finally:
            os.close(into)
        for _ in range(TURNS):
            if ends and not visit.dispatcher.requests.busy:
                break
            await asyncio.sleep(0)
        os.close(out)
        expect(
            END in ends and not visit.dispatcher.requests.busy, "the stream has not ended", data[:200], ends
        )
        stream.flush()
        answers.seek(0)
        return answers.read()


# --- all of it --------------------------------------------------------------------------------------------


class Judge:
    """Judges conversations; one for a process, since servers are not cheap to make."""

    def __init__(self) -> None:
        variants.plain()
        self.loop = asyncio.new_event_loop()

    def judge(self, messages: list[bytes], seed: str) -> None:
        """Send a conversation to the core in every way. Raises Mismatch."""
        chance = random.Random(f"pieces {seed}")
        judge_bodies(messages, chance)
        judge_named(messages, chance)
        judge_stream(messages, chance)
        version = chance.choice([None, "2025-03-26", "2025-11-25"])
        said = judge_server(messages, version)
        self.loop.run_until_complete(judge_variant(messages, said, version, chance))
