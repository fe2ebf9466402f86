"""The audit's records of calls in compiled code: their fields, with two hashes each, then the lines of the
chain; and the SHA-256 in them alone, which is what a record costs at least."""

from __future__ import annotations

import json

import pytest
from calls import BRIEFLY, COUNT

from fastrpc._core.audit_lines import CallLines, ChainLines, sha256_of
from fastrpc._core.recorder import RecordBatch, Recorder

pytestmark = pytest.mark.benchmark(group="record", **BRIEFLY)

ARGUMENTS = b'{"text":"hello"}'
LINE = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":' + ARGUMENTS + b"}}"
)
ANSWER = b'{"content":[{"type":"text","text":"hello"}],"isError":false}'
COMMON = (
    b'"category":"mcp_server","actor":"os:ada","class":"local","action":"tools/call","tool":"echo",'
    b'"outcome":"ok","policy":"6f1bcbd3cacb5a95","decision":"allow","risk":"low"'
)
HEAD, TIME = "audit_01M8CHSD9K7Q7V0T6Y", "2026-11-26T18:27:21.523Z"


def batch() -> RecordBatch:
    recorder = Recorder(COUNT)
    recorder.keeps_content = True
    for number in range(COUNT):
        times = (1000, 3000, 4000, 9000, 109)
        recorder.write("tool", "echo", b"%d" % number, "", "ok", *times, LINE % number, ANSWER)
    return recorder.take(COUNT)


def lines_of(lines: CallLines, chain: ChainLines, records: RecordBatch) -> bytes:
    (calls,) = lines.fields(records)
    return chain.calls(calls, HEAD, TIME, COUNT, 1 << 30)


def test_a_record(benchmark) -> None:
    lines, records = CallLines(lambda call: None), batch()
    lines.common["", "tool", "echo", "ok"] = COMMON
    made = lines_of(lines, ChainLines(), records).splitlines()
    assert [json.loads(line)["request"] for line in made] == list(range(COUNT))
    chain = ChainLines()
    benchmark(lambda: lines_of(lines, chain, records))


def test_its_hashes_alone(benchmark) -> None:
    """Of the arguments, the answer, the line; a leaf of the Merkle tree, and a node."""
    lines = CallLines(lambda call: None)
    lines.common["", "tool", "echo", "ok"] = COMMON
    size = len(lines_of(lines, ChainLines(), batch())) // COUNT
    parts = [(bytes(16), ARGUMENTS), (bytes(16), ANSWER), (b"", bytes(size)), (b"\0", bytes(32))]
    parts.append((b"\1", bytes(64)))

    def hashed() -> None:
        for _ in range(COUNT):
            for first, second in parts:
                sha256_of(first, second)

    benchmark(hashed)
