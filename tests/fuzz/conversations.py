"""What the fuzzer sends: conversations of one client, made of calls that are nearly alike and of damage.

`conversation(seed, number)` returns some dozens of messages, always the same for the same two. A client has
habits (order of members, white space, `_meta`), since the core remembers the shape and the `_meta` of calls
that it has read; only runs of such calls reach that memory. Between them come messages of every method from
the generator, and mutations that know where the tokens of a message lie: cut short behind one, a piece of an
earlier message spliced in, runs of newlines, members twice, values replaced, batches, nesting. It imports
nothing of fastrpc, so that a conversation that has ended a process can be made again outside of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from support.message_generator import TOKENS, Generator

STATELESS = b'"io.modelcontextprotocol/protocolVersion":"2026-07-28"'
CAPABILITIES = b'"io.modelcontextprotocol/clientCapabilities":{}'
METAS = (
    b"{}",
    b'{"traceparent":"00-ab"}',
    b"{%b,%b}" % (STATELESS, CAPABILITIES),
    b"{%b,%b}" % (CAPABILITIES, STATELESS),
    b'{%b,%b,"io.modelcontextprotocol/clientInfo":{"name":"fuzz","version":"1"}}' % (STATELESS, CAPABILITIES),
)
ODD_METAS = (
    b'{%b,%b,"io.modelcontextprotocol/logLevel":"info"}' % (STATELESS, CAPABILITIES),
    b'{%b,%b,"progressToken":7}' % (STATELESS, CAPABILITIES),
    b'{%b,%b,"io.modelcontextprotocol/clientInfo":[]}' % (STATELESS, CAPABILITIES),
    b"{%b}" % STATELESS,
    b'{%b,%b,"io.modelcontextprotocol/protocolVersion":5}' % (STATELESS, CAPABILITIES),
    b'{"io.modelcontextprotocol/protocolVersion":"2099-01-01",%b}' % CAPABILITIES,
    b'{"progressToken":"t"}',
    b"[]",
    b"null",
)
TOOLS = {
    "tool": ("a", "b", "text"),
    "typed": ("s", "n", "x", "flag", "o", "l", "maybe"),
    "wide": tuple(f"p{number}" for number in range(16)),
    "nobody": ("a",),
}
METHODS = (
    "tools/list",
    "ping",
    "server/discover",
    "initialize",
    "tools/call",
    "resources/read",
    "prompts/get",
)
MEMBERS = {"resources/read": b'"uri":"docs://a"', "prompts/get": b'"name":"greet","arguments":{"name":"you"}'}
SPACES = (b"", b"", b"", b" ", b" ", b"\t", b"\n", b"\r\n", b"\n  ")
RUNS = (1, 2, 15, 16, 17, 31, 63, 64, 65, 66, 67, 100, 200, 300, 500, 800, 900, 1000, 1023, 1024, 1100)
RUN = re.compile(rb"([ \t\r\n])\1{14,}")
LONG_TEXTS = (15, 16, 17, 63, 64, 65, 200, 1023, 1024, 1025, 4096, 17_000, 70_000)
LONGEST = 8_000  # of a message that is mutated: the twin is slow
MESSAGES = 40


def conversation(seed: str, number: int) -> list[bytes]:
    """Return the messages of one client, in their order."""
    return Client(f"{seed}.{number}").messages()


class Habit:
    """How a client writes its calls of one tool, over and over."""

    def __init__(self, client: Client) -> None:
        random = client.random
        self.client = client
        self.tool = client.pick(("tool", "tool", "tool", "typed", "typed", "wide", "nobody"))
        self.order = random.sample(["jsonrpc", "id", "method", "params"], 4)
        self.inner = random.sample(["name", "arguments", "_meta"], 3)
        names = [*TOOLS[self.tool], "other"]
        self.names = random.sample(names, random.randint(0, len(names)))
        self.space, self.colon = client.pick(SPACES), client.pick((b":", b":", b": ", b" : "))
        self.meta = client.meta() if client.chance(0.6) else None
        self.plain = client.chance(0.7)  # values that the strict pass reads by itself
        self.text_ids = client.chance(0.3)
        self.is_laid_out = client.chance(0.15)

    def call(self) -> bytes:
        """Return one more call."""
        client = self.client
        arguments = [(name, client.argument(self.plain)) for name in self.names]
        if client.chance(0.02):
            arguments.append((client.pick(self.names or ["a"]), client.argument(self.plain)))
        params = {"name": b'"%b"' % self.tool.encode(), "arguments": self.object(arguments)}
        if self.meta is not None:
            params["_meta"] = self.meta
        number = client.random.randint(0, 10 ** client.pick((1, 3, 6, 17, 18, 19)))
        members = {
            "jsonrpc": b'"2.0"',
            "id": b'"id %d"' % number if self.text_ids else b"%d" % number,
            "method": b'"tools/call"',
            "params": self.object([(name, params[name]) for name in self.inner if name in params]),
        }
        call = self.object([(name, members[name]) for name in self.order])
        return client.laid_out(call) if self.is_laid_out else call

    def object(self, members: list[tuple[str, bytes]]) -> bytes:
        space = self.space
        pieces = [b'"%b"%b%b' % (name.encode(), self.colon, value) for name, value in members]
        return b"{" + space + (b"," + space).join(pieces) + space + b"}"


class Client(Generator):
    """One client, and what it or somebody in its place sends."""

    def messages(self) -> list[bytes]:
        """Return the messages of a whole conversation."""
        mutations: tuple[Callable[[bytes], bytes], ...] = (
            *(self.cut_short,) * 4,
            *(self.spaced,) * 2,
            self.spliced,
            self.repeated,
            self.replaced,
            self.nested_in,
            self.damaged,
            self.laid_out,
        )
        self.sent: list[bytes] = []
        habits = [Habit(self) for _ in range(self.pick((1, 1, 2)))]
        while len(self.sent) < MESSAGES:
            kind = self.random.random()
            if kind < 0.45:
                habit = self.pick(habits)
                self.sent += [habit.call() for _ in range(self.random.randint(1, 8))]
            elif kind < 0.60:
                self.sent += [self.body() for _ in range(self.random.randint(1, 3))]
            elif kind < 0.64:
                self.sent.append(self.request())
            elif kind < 0.68:
                self.sent.append(self.batch(habits))
            else:
                message = self.pick(habits).call() if self.chance(0.7) or not self.sent else self.earlier()
                for _ in range(self.pick((1, 1, 1, 2, 3))):
                    message = self.pick(mutations)(message)[:LONGEST]
                self.sent.append(message)
        return self.sent

    # --- whole messages -------------------------------------------------------------------------------------

    def request(self) -> bytes:
        """A well-formed request of another method, in the version of a `_meta` or without one."""
        method = self.pick(METHODS)
        members = [MEMBERS[method]] if method in MEMBERS and self.chance(0.8) else []
        if self.chance(0.7):
            members.append(b'"_meta":%b' % self.meta())
        return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":{%b}}' % (
            self.request_id(),
            method.encode(),
            b",".join(members),
        )

    def batch(self, habits: list[Habit]) -> bytes:
        elements = [
            self.pick((self.pick(habits).call, self.request, self.earlier, self.document))()[:LONGEST]
            for _ in range(self.random.randint(0, 4))
        ]
        space = self.pick(SPACES)
        return b"[" + (space + b"," + space).join(elements) + space + b"]"

    def earlier(self) -> bytes:
        return self.pick(self.sent)[:LONGEST] if self.sent else b"{}"

    # --- values ---------------------------------------------------------------------------------------------

    def argument(self, plain: bool) -> bytes:
        if self.chance(0.02):
            size = self.pick(LONG_TEXTS) + self.random.randint(-1, 1)
            return b'"%b"' % (self.pick((b"x", b"\\n", "é".encode(), "漢".encode())) * size)[:size].rstrip(
                b"\\\xc3\xe6\xbc"
            )
        if not plain and self.chance(0.4):
            return self.value(3)
        kind = self.random.randrange(6)
        if kind < 3:
            return self.string()
        if kind == 3:
            return self.pick((b"true", b"false", b"null", b"0", b"-1", b"{}", b"[]"))
        return b"%d" % self.random.randint(-(10**18), 10 ** self.pick((1, 5, 17, 18, 19, 20)))

    def meta(self) -> bytes:
        """A `_meta`, often one with white space in it, up to the size that the core remembers and beyond."""
        meta = self.pick(METAS) if self.chance(0.85) else self.pick(ODD_METAS)
        if self.chance(0.15):
            meta = b'{"filling":"%b"%b' % (
                b"x" * (self.pick(RUNS) - 20),
                b"," + meta[1:] if len(meta) > 2 and meta[:1] == b"{" else b"}",
            )
        return self.spaced(meta) if self.chance(0.6) else meta

    # --- mutations ------------------------------------------------------------------------------------------

    def between_tokens(self, message: bytes) -> int:
        """A place between two tokens, behind what opens something in one case of two."""
        places = [match.end() for match in TOKENS.finditer(message)]
        opening = [at for at in places if message[at - 1 : at] in (b"{", b"[", b":", b",")]
        return self.pick(opening if opening and self.chance(0.5) else [0, *places])

    def cut_short(self, message: bytes) -> bytes:
        """Its beginning: up to a token, up to or into a run of white space, or up to anywhere."""
        kind = self.random.random()
        run = RUN.search(message)
        if run is not None and kind < 0.4:
            return message[: self.pick((run.start(), self.random.randint(run.start(), run.end())))]
        if kind < 0.8:
            return message[: self.between_tokens(message)]
        return message[: self.random.randint(0, len(message))]

    def spaced(self, message: bytes) -> bytes:
        """White space at one place, a run of some length."""
        space = self.pick((b"\n", b"\n", b"\n", b" ", b"\t", b"\r", b"\r\n"))
        at = self.between_tokens(message)
        return message[:at] + space * self.pick(RUNS) + message[at:]

    def spliced(self, message: bytes) -> bytes:
        """The beginning of one message, the end of another."""
        other = self.earlier()
        return message[: self.between_tokens(message)] + other[self.between_tokens(other) :]

    def repeated(self, message: bytes) -> bytes:
        """A piece of it twice: a member, a bracket, a part of a text."""
        start, end = sorted((self.between_tokens(message), self.between_tokens(message)))
        return message[:end] + self.pick((b"", b",")) + message[start:end] + message[end:]

    def replaced(self, message: bytes) -> bytes:
        """Another value, or another key, in the place of a token."""
        tokens = list(TOKENS.finditer(message))
        if not tokens:
            return self.value(1)
        token = self.pick(tokens)
        value = self.pick((self.value, lambda depth: self.number(), lambda depth: self.string()))(2)
        return message[: token.start()] + value + message[token.end() :]

    def nested_in(self, message: bytes) -> bytes:
        """A value in the place of another one, so deep that the message is at the limit of depth."""
        values = [
            token for token in TOKENS.finditer(message) if message[: token.start()].rstrip()[-1:] == b":"
        ]
        if not values:
            return self.nested()
        token = self.pick(values)
        around = sum(message.count(opening, 0, token.start()) for opening in (b"{", b"["))
        around -= sum(message.count(closing, 0, token.start()) for closing in (b"}", b"]"))
        levels = max(self.pick((2, 64, 127, 128, 128, 129, 130, 1100)) - around, 1)
        inner = self.pick((b"", b"", b"1", b"[]", b"18446744073709551616"))
        value = b"[" * levels + inner + b"]" * levels
        if self.chance(0.5):
            value = b'{"a":' * levels + (inner or b"{}") + b"}" * levels
        return message[: token.start()] + value + message[token.end() :]
