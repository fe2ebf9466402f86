"""Lines of the audit log in compiled code: against hashlib, and against records that Python makes."""

from __future__ import annotations

import asyncio
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded, shop

from fastrpc._core.audit_lines import CallFields, CallLines, ChainLines, MerkleTree, identifier, sha256_of
from fastrpc._core.recorder import RecordBatch, Recorder
from fastrpc.guard.audit.calls import CallAudit
from fastrpc.testing import Client

FIRST = (0, 1, 16, 31, 32, 55, 56, 57, 63, 64)
SECOND = (*range(200), 1000, 4096, 70_001)


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("size", FIRST)
def test_a_hash_is_that_of_hashlib(size: int, is_plain: bool) -> None:
    for other in SECOND:
        first, second = os.urandom(size), os.urandom(other)
        assert sha256_of(first, second, is_plain=is_plain) == sha256(first + second).digest()


def test_a_first_part_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="expected at most 64 bytes, got 65"):
        sha256_of(bytes(65), b"")


def merkle_root(leaves: list[bytes]) -> bytes:
    """The root as RFC 6962, section 2.1, defines it."""
    if not leaves:
        return sha256().digest()
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\1" + merkle_root(leaves[:half]) + merkle_root(leaves[half:])).digest()


def test_a_root_is_that_of_the_definition() -> None:
    leaves: list[bytes] = []
    tree = MerkleTree()
    for number in range(70):
        assert (tree.count, tree.root()) == (number, merkle_root(leaves))
        leaves.append(b"leaf %d" % number)
        tree.add(leaves[-1])


def test_lines_are_linked_and_a_sealed_one_begins_another_tree() -> None:
    chain = ChainLines()
    lines = [chain.line(b'"a":1}'), chain.line(b'"b":2}')]
    leaves = [sha256(line[:-1]).digest() for line in lines]
    assert chain.tree.root() == merkle_root(leaves)
    sealed = chain.head() + b',"c":3}'
    chain.seal(sealed)
    lines += [sealed + b"\n", chain.line(b'"d":4}')]
    previous = "0" * 64
    for number, line in enumerate(lines, 1):
        assert line.endswith(b"\n")
        found = json.loads(line)
        assert (found["seq"], found["prev"]) == (number, previous)
        previous = sha256(line[:-1]).hexdigest()
    assert (chain.sequence, chain.tree.count) == (4, 1)


def test_ids_count_in_base_32_and_sort_as_they_count() -> None:
    assert [identifier("x", number) for number in (31, 32)] == ["x0000000Z", "x00000010"]
    assert identifier("x", 32**8 - 1) == "xZZZZZZZZ"
    found = [identifier("audit_", number) for number in range(3000)]
    assert found == sorted(set(found))
    with pytest.raises(ValueError, match="at most 48"):
        identifier("x" * 49, 0)


class KeptLines:
    """An audit log that keeps what it is handed."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def append_all(self, records: list[Any]) -> None:
        self.records += texts(records)


def texts(records: list[Any]) -> list[Any]:
    """Records of calls as single texts, others as they are."""
    found: list[Any] = []
    for record in records:
        found += record.texts() if isinstance(record, CallFields) else [record]
    return found


@pytest.fixture
def audit(tmp_path: Path) -> CallAudit:
    app, guard = guarded(tmp_path, '[expose]\ntools = ["*"]\n', shop())

    async def decide() -> None:
        async with Client(app) as client:
            await client.call("search", text="x")

    asyncio.run(decide())
    found = CallAudit(KeptLines())  # type: ignore[arg-type]
    found.guard = guard
    return found


LINE = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"text":"x"}}}'
TRACE = b'"_meta":{"traceparent":"00-%b-%b-01"}' % (b"a" * 32, b"b" * 16)
ARGUMENTS = b'{"text":"x"}'
ANSWER = b'{"content":[]}'


def records(*ids: bytes, line: bytes = LINE, answer: bytes | None = ANSWER, **more: Any) -> RecordBatch:
    recorder = Recorder()
    recorder.keeps_content = True
    facts = {"kind": "tool", "name": "search", "principal": "", "outcome": "ok", "size": 14, **more}
    for id in ids:
        recorder.write(
            *(facts["kind"], facts["name"], id, facts["principal"], facts["outcome"]),
            *(1000, 3000, 4000, 9000, facts["size"]),
            *(line, answer),
        )
    return recorder.take()


def made(audit: CallAudit, calls: RecordBatch) -> list[Any]:
    log: Any = audit._log
    log.records.clear()
    audit.take_batch(calls)
    return list(log.records)


def warm(audit: CallAudit, calls: RecordBatch) -> None:
    """Have it look for secrets in the environment, twice, and find what calls have in common."""
    for _ in range(3):
        made(audit, calls)


def check_hash(found: dict[str, str], content: bytes) -> None:
    assert found["sha256"] == sha256(bytes.fromhex(found["salt"]) + content).hexdigest()


@pytest.mark.parametrize("outcome", ["ok", "tool_error", "cancelled"])
def test_a_likely_call_has_the_fields_that_python_gives_it(audit: CallAudit, outcome: str) -> None:
    answer, size = (None, 0) if outcome == "cancelled" else (ANSWER, 14)
    calls = records(b"1", b"999999999999999999", outcome=outcome, answer=answer, size=size)
    warm(audit, calls)
    for call, line in zip(calls.calls(), made(audit, calls), strict=True):
        assert type(line) is bytes
        found, expected = json.loads(b"{" + line), dict(audit._record_of(call))
        check_hash(found.pop("arguments"), ARGUMENTS)
        expected.pop("arguments")
        if size:
            check_hash(found.pop("result"), ANSWER)
            expected.pop("result")
        for name in ("bind_us", "guard_us", "run_us", "encode_us", "total_us"):
            assert found.pop(name) == pytest.approx(expected.pop(name), abs=0.11)
        assert found == expected


def test_no_two_records_have_one_salt(audit: CallAudit) -> None:
    calls = records(*(b"%d" % number for number in range(200)))
    warm(audit, calls)
    found = [json.loads(b"{" + line) for line in made(audit, calls)]
    salts = {each[name]["salt"] for each in found for name in ("arguments", "result")}
    assert len(salts) == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "order"},  # about which nothing was decided
        {"line": LINE.replace(b'"name"', TRACE + b',"name"')},
        {"line": None},
        {"answer": None},
    ],
)
def test_what_is_not_likely_is_made_by_python(audit: CallAudit, changed: dict[str, Any]) -> None:
    warm(audit, records(b"1"))
    for _ in range(2):
        (found,) = made(audit, records(b"1", **changed))
        assert type(found) is dict
    for id in (b'"text"', b"1.5", b"-1", b"1" * 19):
        (found,) = made(audit, records(id))
        assert type(found) is dict


def test_what_calls_have_in_common_is_made_anew_when_something_else_is_decided(audit: CallAudit) -> None:
    warm(audit, records(b"1"))
    assert audit._lines.common
    assert audit.guard is not None
    audit.guard.use(audit.guard.policy)
    (found,) = made(audit, records(b"1"))
    assert type(found) is dict, "the guard has not decided about it since"
    assert not audit._lines.common


def test_a_large_answer_is_hashed_whole(audit: CallAudit) -> None:
    answer = os.urandom(300_000)
    calls = records(b"1", answer=answer, size=len(answer))
    warm(audit, calls)
    (line,) = made(audit, calls)
    check_hash(json.loads(b"{" + line)["result"], answer)


def test_what_is_hashed_at_the_same_time_does_not_mix(audit: CallAudit) -> None:
    """Arguments and answers that end before each other, at each place of a block; lines whose tree grows by
    more nodes than a line has blocks."""
    warm(audit, records(b"1"))
    chain, made_lines, contents = ChainLines(), [], []
    for size in range(300):
        arguments, answer = b'{"text":"%b"}' % (b"x" * size), os.urandom((size * 7) % 301)
        line = LINE.replace(ARGUMENTS, arguments)
        (calls,) = audit._lines.fields(records(b"1", line=line, answer=answer, size=len(answer)))
        contents.append((arguments, answer))
        made_lines.append(b"{" + calls.texts()[0])
    for line, (arguments, answer) in zip(made_lines, contents, strict=True):
        found = json.loads(line)
        check_hash(found["arguments"], arguments)
        if answer:
            check_hash(found["result"], answer)
    (calls,) = audit._lines.fields(records(*(b"%d" % number for number in range(300))))
    lines = chain.calls(calls, "audit_x", "2026-04-22T10:15:23.847Z", 300, 10**9).splitlines()
    assert chain.tree.root() == merkle_root([sha256(line).digest() for line in lines])


def test_lines_are_as_long_as_what_they_have_in_common() -> None:
    lines = CallLines(lambda call: "otherwise")
    calls = records(b"1")
    assert lines.fields(calls) == ["otherwise"]
    for size in (0, 10, 100_000, 5):
        lines.common["", "tool", "search", "ok"] = b'"a":"%b"' % (b"x" * size)
        (line,) = texts(lines.fields(calls))
        assert json.loads(b"{" + line)["a"] == "x" * size


def several(*facts: tuple[bytes, str]) -> RecordBatch:
    """Calls with these ids and outcomes."""
    recorder = Recorder()
    recorder.keeps_content = True
    for id, outcome in facts:
        recorder.write("tool", "search", id, "", outcome, 1000, 3000, 4000, 9000, 14, LINE, ANSWER)
    return recorder.take()


def test_calls_keep_their_order_and_those_that_the_guard_has_refused_are_left_out() -> None:
    lines = CallLines(lambda call: call.id)
    lines.common["", "tool", "search", "ok"] = b'"a":1'
    ok = [(id, "ok") for id in (b"1", b"2", b'"x"', b"6")]
    batch = several(*ok[:2], (b"3", "refused"), ok[2], (b"5", "tool_error"), ok[3])
    found = lines.fields(batch)
    assert [each if type(each) is bytes else each.count for each in found] == [2, b'"x"', b"5", 1]
    kept = [each if each in (b'"x"', b"5") else json.loads(b"{" + each)["request"] for each in texts(found)]
    assert kept == [1, 2, b'"x"', b"5", 6]


def test_the_lines_of_calls_are_linked_as_others_are_and_end_at_their_limit() -> None:
    lines, chain = CallLines(lambda call: None), ChainLines()
    lines.common["", "tool", "search", "ok"] = b'"a":1'
    (calls,) = lines.fields(several(*((b"%d" % number, "ok") for number in range(10))))
    calls.first = 31
    parts = [chain.line(b'"b":2}')]
    size = len(ChainLines().line(calls.texts()[0])) + 60  # with an id and a time
    limits = ((3, 10**9, 7), (100, 1, 6), (100, size + 30, 4), (100, 10**9, 0), (100, 10**9, 0))
    for most, most_bytes, left in limits:
        parts.append(chain.calls(calls, "audit_x", "2026-04-22T10:15:23.847Z", most, most_bytes))
        assert calls.count == left
    made = b"".join(parts).splitlines()
    assert chain.tree.root() == merkle_root([sha256(line).digest() for line in made])
    previous = "0" * 64
    for number, line in enumerate(made, 1):
        found = json.loads(line)
        assert (found["seq"], found["prev"]) == (number, previous)
        previous = sha256(line).hexdigest()
        if number > 1:
            assert found["id"] == identifier("audit_x", 31 + number - 2)
            assert (found["time"], found["request"]) == ("2026-04-22T10:15:23.847Z", number - 2)
    with pytest.raises(ValueError, match="at most 48"):
        chain.calls(calls, "x" * 49, "", 1, 1)
