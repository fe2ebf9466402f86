"""What reads the text, the list or the document of a peer takes time in proportion to its size, or nearly.

Each case is one loop that could be quadratic, with the input that it finds hardest, and is tried with that
input and with four times as much, in processor time: four times the time is linear, sixteen times quadratic.
Where even the larger input takes next to no time, nothing is compared. Regular expressions are tried in
`test_patterns`, messages of the protocol in `benchmarks/line_costs.py`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastrpc import Client, Server, redaction
from fastrpc.client.http.cookies import Cookies
from fastrpc.client.http.encodings import Decompressor
from fastrpc.client.http.events import Events
from fastrpc.client.http.stateless import check_marks
from fastrpc.client.schema_costs import evaluations
from fastrpc.compat.functions.docstrings import read_docstring
from fastrpc.compat.transforms.search import Index
from fastrpc.definitions.completion import matching
from fastrpc.errors import FastrpcError, suggest
from fastrpc.guard import cel
from fastrpc.guard.approvals.canonical import canonical
from fastrpc.guard.approvals.display import masked_tree, visible, written
from fastrpc.guard.audit import AuditLog, verify
from fastrpc.guard.shell import masking
from fastrpc.guard.shell.lexer import read
from fastrpc.guard.shell.parser import commands
from fastrpc.json_text import parse
from fastrpc.openapi.document import operations_of
from fastrpc.openapi.tools import TakenNames
from fastrpc.protocol.pagination import page_of
from fastrpc.protocol.uri_template import Template, normal, without_dots
from fastrpc.transports.http.guard import Refused, origin_form
from fastrpc.transports.http.request import HttpRequest
from tools.agent import _text, _web_address
from tools.agent._documents import to_html, to_markdown, to_text

pytestmark = pytest.mark.long

MOST_GROWTH = 8.0
"""Between linear, 4, and quadratic, 16: a shared machine and what sorts take their part."""
UNNOTICED = 0.02
"""Seconds of the processor that say nothing about growth, and harm no one."""
LATE = 5.0
TRIES = 3

Work = Callable[[], object]
Make = Callable[[int], Work]
FOLDER: str | None = None
CASES: dict[str, tuple[int, Make]] = {}
"""By name: the smaller size, and what makes the work of a size."""


def case(size: int) -> Callable[[Make], Make]:
    def added(make: Make) -> Make:
        CASES[make.__name__] = size, make
        return make

    return added


def texts(name: str, size: int, work: Callable[[str], object], *units: str, begin: str = "") -> None:
    """Add a case for each unit, which the text repeats."""
    for unit in units:

        def make(size: int, unit: str = unit) -> Work:
            text = begin + unit * (size // len(unit))
            return lambda: work(text)

        CASES[f"{name} of {unit[:24]!r}"] = size, make


def run(conversation: Callable[[Any], Any], app: Server, **options: Any) -> Work:
    async def talk() -> None:
        async with Client(app, **options) as client:
            await conversation(client)

    return lambda: asyncio.run(talk())


# --- texts ------------------------------------------------------------------------------------------------


def read_events(text: str) -> None:
    for _ in Events(1 << 26).feed(text.encode()):
        pass


def read_events_in_pieces(text: str) -> None:
    events, data = Events(1 << 26), text.encode()
    for at in range(0, len(data), 100):
        for _ in events.feed(data[at : at + 100]):
            pass


LINES = ("\r", "\n", "data:\n", "data: a\r", "id: 1\n", ":", "retry: 1\r\n")
texts("events", 100_000, read_events, *LINES)
texts("events in pieces", 100_000, read_events_in_pieces, *LINES)

PARTS = ("%", "%41", "/", "/..", "é", "?", "&a=b", "@", ":", "A", ";a", ",")
texts("the normal form of a URI", 50_000, lambda text: without_dots(normal(text)), *PARTS, begin="http://")
TEMPLATES = [
    Template(text)
    for text in ("a://{x}/{y}{z}", "a://{path*}{?a,b,c}", "a://{+x}{+y}a{;a,b}{/c,d}{.e,f}{#g}")
]
texts(
    "a URI of a template",
    4000,
    lambda text: [each.match(text) for each in TEMPLATES],
    *PARTS,
    begin="a://",
)

WORDS = (
    "a ",
    "a;",
    "'a' ",
    "\\a",
    "$a ",
    "$(",
    "(",
    "{a,",
    "<<a\n",
    "`",
    ">a ",
    "a\n",
    "a&&",
    "a|",
    "a=b ",
    '"',
)
texts("a line of a shell", 25_000, read, *WORDS)
texts("a tree of a shell's line", 25_000, commands, *WORDS, begin="a")
texts("what may be masked in a line", 25_000, masking.masked_literals, *WORDS, begin="a --token=b ")
SECRETS = ('tokena" : [', "token=", "Bearer ", "://a@", '"password": "', "--token a ", "authorization: ")
texts("masked secrets", 50_000, redaction.masked, *SECRETS, "atoken-ids='a-")
texts("masked output", 50_000, redaction.masked_output, "sk-", "ghp_a1", "eyJ.", "a ", begin="sk-")
texts("masked words", 50_000, masking.masked_literals, *SECRETS, "atoken-ids='a-", begin="a ")

texts("JSON with comments", 50_000, lambda text: parse(f"[{text}1]"), "1,", "/**/", "//\n", " ", '{"a":1},')
texts("a docstring", 20_000, read_docstring, "a\n", "Args:\n", "    a: b\n", ":param a: b\n", "a\n---\n")
texts("what is seen of a text", 50_000, lambda text: visible(json.dumps(text)), "a", "é", " ", "\u200b", "а")
texts("what a terminal would show", 50_000, _text.clean, "\x1b[", "\r", "a\b", "\x1b]", "\x1b[1m", "a\r\n")
texts("the beginning of a result", 50_000, _text.head_of, "a", "é", "\n")
texts("an address of the web", 20_000, _web_address.shorten, "a", "%41", "/", "é", begin="http://")

HTML = (
    *(
        "<div>",
        "<p>a",
        "<ul><li>a",
        "<table><tr><td>a",
        "<td colspan=1000>a</td>",
        "<tr><td rowspan=1000>a</td></tr>",
    ),
    *("<b>", "<a href=x>", "<blockquote>a", "<pre>a", "<h1>a</h1>", "<", "&", "* ", "<br>", "<!--", "[a]("),
)
for convert in (to_markdown, to_text, to_html):
    texts(
        f"a page {convert.__name__}",
        10_000,
        lambda text, convert=convert: convert(text, "https://a.example/"),  # type: ignore[misc]
        *HTML,
        begin="<html><body><article><p>Hello world, this is it.</p>",
    )

# --- heads and bodies -------------------------------------------------------------------------------------

texts(
    "cookies", 60_000, lambda text: Cookies().take([(b"set-cookie", text[:4096].encode())] * 20), ";", "a=b;"
)


def accepts(text: str) -> None:
    scope = {"method": "POST", "path": "/", "headers": [(b"accept", text.encode())], "http_version": "1.1"}
    HttpRequest(scope, None, None).accepts("application/json", "text/event-stream")  # type: ignore[arg-type]


texts("a header of media types", 60_000, accepts, ",", ";", "a/b,", " ")


def target(text: str) -> None:
    try:
        origin_form("POST", text.encode(), [])
    except Refused:
        pass


texts("an absolute target", 60_000, target, "/", ":", "@", "%", begin="http://")


@case(100_000)
def compressed(size: int) -> Work:
    import zlib

    data = zlib.compress(bytes(size * 10))
    return lambda: sum(len(each) for each in Decompressor("deflate").feed(data))


# --- names, lists and their pages -------------------------------------------------------------------------


@case(2500)
def a_misspelt_name_among_many(count: int) -> Work:
    names = [f"tool_of_server_{number:06d}_and_more" for number in range(count)]
    return lambda: suggest("tool_of_servr_and_mre", names)


@case(1000)
def a_misspelt_name_among_long_ones(count: int) -> Work:
    names = ["ab" * 64 + str(number) for number in range(count)]
    return lambda: suggest("ba" * 64, names)


@case(250)
def unknown_arguments(count: int) -> Work:
    app = Server("t")

    @app.tool
    def twice(alpha: int, beta: int) -> int:
        return alpha + beta

    arguments = {"alph" * 20 + str(number): 1 for number in range(count)}

    async def call(client: Any) -> None:
        assert (await client.call_tool("twice", arguments)).is_error

    return run(call, app)


@case(300)
def registered_resources(count: int) -> Work:
    def work() -> None:
        app = Server("t")
        for number in range(count):
            app.resource(f"a://{number}")(lambda: "")

    return work


def app_with(count: int, **options: Any) -> Server:
    app = Server("t", **options)

    def read(rest: str) -> str:
        return rest

    for number in range(count):
        app.tool(lambda: "", name=f"t{number}")
        app.resource(f"a://{number}")(lambda: "")
        app.resource(f"b://{{rest}}/{number}")(read)
    return app


@case(250)
def pages_of_a_list(count: int) -> Work:
    return run(lambda client: client.list_tools(), app_with(count, page_size=10))


@case(500)
def a_uri_that_no_template_of_many_matches(count: int) -> Work:
    async def ask(client: Any) -> None:
        with pytest.raises(FastrpcError, match="b://"):
            await client.read_resource("b://" + "x" * 10_000)

    return run(ask, app_with(count))


@case(300)
def subscriptions(count: int) -> Work:
    app = app_with(count)

    async def subscribe(client: Any) -> None:
        for number in range(count):
            await client.subscribe(f"a://{number}")
        for number in range(count):
            app.resource_updated(f"a://{number}")

    return run(subscribe, app, version="2025-11-25")


@case(1000)
def calls_that_wait_and_are_cancelled(count: int) -> Work:
    app = Server("t")

    @app.tool(max_running=1)
    async def wait() -> None:
        await asyncio.sleep(1000)

    async def cancel(client: Any) -> None:
        calls = [asyncio.ensure_future(client.call_tool("wait")) for _ in range(count)]
        await asyncio.sleep(0.01)
        for call in reversed(calls):
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    return run(cancel, app, version="2025-11-25")


@case(5000)
def pages(count: int) -> Work:
    keys = [f"k{number}" for number in range(count)]

    def work() -> None:
        cursor: str | None = None
        while True:
            _, _, cursor = page_of(keys, cursor, 50)
            if cursor is None:
                return

    return work


@case(20_000)
def completions(count: int) -> Work:
    choices = [f"value {number}" for number in range(count)]
    return lambda: matching("lue", choices)


@case(2000)
def words_of_a_search(count: int) -> Work:
    index = Index([f"tool number {number}" for number in range(200)])
    return lambda: index.best("tool number " * count, 5)


# --- schemas and documents --------------------------------------------------------------------------------


def document(schema: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/a": {"get": {"responses": {"200": {"description": "d", "content": content}}}}},
        "components": {"schemas": schemas},
    }


def reference(number: int) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/A{number}"}


def operations(schema: Any, schemas: dict[str, Any]) -> Work:
    whole = document(schema, schemas)
    return lambda: operations_of(whole)


def with_properties(*targets: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{at}": reference(each) for at, each in enumerate(targets)}}


@case(1000)
def an_enumeration(count: int) -> Work:
    return operations({"enum": [*range(count)]}, {})


@case(100)
def types_that_refer_to_the_next(count: int) -> Work:
    schemas = {f"A{number}": with_properties(number + 1) for number in range(count)}
    return operations(reference(0), {**schemas, f"A{count}": {"type": "string"}})


@case(20)
def types_that_refer_twice_to_the_next(count: int) -> Work:
    schemas = {f"A{number}": with_properties(number + 1, number + 1) for number in range(count)}
    return operations(reference(0), {**schemas, f"A{count}": {"type": "string"}})


@case(200)
def types_in_a_ring(count: int) -> Work:
    schemas = {f"A{number}": with_properties((number + 1) % count) for number in range(count)}
    return operations(with_properties(*range(count)), schemas)


@case(2000)
def operations_of_one_name(count: int) -> Work:
    def work() -> None:
        taken = TakenNames()
        for _ in range(count):
            taken.free("a")

    return work


@case(500)
def schemas_that_are_counted(count: int) -> Work:
    refs: list[Any] = [{"$ref": f"#/$defs/A{number + 1}"} for number in range(count)]
    schemas: dict[str, Any] = {f"A{number}": {"allOf": [each, each]} for number, each in enumerate(refs)}
    schemas[f"A{count}"] = {"type": "object"}
    return lambda: evaluations({"anyOf": refs, "$defs": schemas}, 1_000_000)


@case(5000)
def marks_in_a_schema(count: int) -> Work:
    schema = {
        "properties": {
            f"p{number}": {"type": "string", "x-mcp-header": f"H{number}"} for number in range(count)
        }
    }
    return lambda: check_marks(schema)


@case(2000)
def arguments_that_are_shown(count: int) -> Work:
    value = {f"k{number}": ["a b", {"token": "abc1"}] for number in range(count)}
    return lambda: written(masked_tree(canonical(value)), 2)


# --- rules and audit logs ---------------------------------------------------------------------------------

RULES = (
    "args.text.contains('aab')",
    "args.text.matches('(a+)+b$')",
    "args.text.startsWith(args.text)",
    "args.text == args.again",
    "args.items == args.others",
    "args.items.exists(each, each == 'b')",
    "'b' in args.items",
    "args.map == args.map",
    "args.items.filter(each, size(each) > 1).size() > 0",
    "args.items.map(each, each + each).size() == 0",
)


def rules() -> None:
    for rule in RULES:

        def make(size: int, rule: str = rule) -> Work:
            expression = cel.compile(rule, {"args": cel.DYN})
            items = ["a"] * (size // 2)
            args = {
                "text": "a" * size,
                "again": "a" * size,
                "items": items,
                "others": [*items],
                "map": {f"k{number}": number for number in range(size // 10)},
            }

            def judge() -> None:
                try:
                    expression.test({"args": args})
                except cel.EvaluationError:
                    pass  # it has taken all its steps

            return judge

        CASES[f"the rule {rule}"] = 25_000, make


rules()


def written_log(folder: str, count: int) -> Path:
    """Write a log of one segment of so many records."""
    log = AuditLog(folder)
    for number in range(count):
        log.append({"number": number})
    log.close()
    (segment,) = Path(folder).glob("2*.jsonl")
    return segment


@case(2000)
def a_log_that_is_verified(count: int) -> Work:
    folder = tempfile.mkdtemp(dir=FOLDER)
    written_log(folder, count)
    return lambda: verify.verify(folder)


@case(4000)
def a_log_of_which_every_other_line_was_moved_to_its_end(count: int) -> Work:
    folder = tempfile.mkdtemp(dir=FOLDER)
    segment = written_log(folder, count)
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join([*lines[::2], *lines[1::2][::-1]]))
    return lambda: verify.verify(folder)


# --- the test ---------------------------------------------------------------------------------------------


def seconds_of(work: Work) -> float:
    """Return the processor time of some work, the least of three times."""
    least = LATE
    for _ in range(3):
        gc.collect()
        began = time.process_time()
        work()
        least = min(least, time.process_time() - began)
        if least < UNNOTICED / 4:
            break
    return least


def grows_faster(make: Make, size: int) -> str:
    """Say how much longer four times as much takes, if that is too much; "" if it is not. What other programs
    do to the caches may cost the larger input more: what looks so is tried again."""
    for _ in range(TRIES):
        small, large = seconds_of(make(size)), seconds_of(make(4 * size))
        if large < UNNOTICED or large < MOST_GROWTH * small:
            return ""
    return f"{small:.4f} s, then {large:.4f} s"


@pytest.fixture(autouse=True, scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have what the cases write lie where pytest removes it."""
    global FOLDER
    FOLDER = str(tmp_path_factory.mktemp("growth"))
    yield
    FOLDER = None


@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CASES)
def test_four_times_as_much_takes_no_more_than_about_four_times_as_long(name: str) -> None:
    size, make = CASES[name]
    assert grows_faster(make, size) == ""


@pytest.mark.alone
def test_what_is_quadratic_is_found() -> None:
    def quadratic(size: int) -> Work:
        values = [*range(size)]
        return lambda: [each for each in values if -each - 1 in values]

    assert grows_faster(quadratic, 700)
