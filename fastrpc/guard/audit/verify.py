"""Verifies an audit log of fastrpc: one file, on the standard library of Python 3.10 alone, to be read and
copied.

    python verify.py FOLDER [--public-key FILE] [--checkpoint FILE]
    python verify.py check PROOF [--public-key FILE] [--record FILE]

What an audit log is

* A folder of segments, ``TIME-CHAIN-NUMBER.jsonl``. A process writes one chain, from segment 1 on.
* A line is ``{"seq":N,"prev":"…",…}`` and a newline. `seq` counts from 1 in each chain. `prev` is the
  SHA-256, in hex, of the bytes of the line before it without its newline, also from one segment to the next;
  64 zeros in the first line. After these a record has ``"id"``, and a line of the log itself ``"kind"``:
  ``segment``, the first line of each file; ``checkpoint``; ``gap``, how many records are missing here, and
  why; ``delayed``, how many records before this line were written late.
* A checkpoint's `root` is the Merkle root (RFC 6962, 2.1: SHA-256, 0x00 before a leaf, 0x01 before a node)
  over the `count` lines since the last checkpoint of the chain; a leaf is the SHA-256 of such a line, 32
  bytes.
* `signature` is an Ed25519 signature (RFC 8032), in base64, of the bytes of its line before
  ``,"signature":``. `key` names the public key: the first 16 hex digits of the SHA-256 of its 32 bytes.
* The first line of a chain states in `beside` where other chains ended when it began.
* A line of ``dropped.jsonl``, signed in the same way, records that retention has removed a segment.

It detects a changed bit; dropped, doubled, swapped and inserted lines; missing files, in a chain and between
chains; a missing signature where one is due, which is after the first line of a chain, and after
`MOST_UNSIGNED` lines or `LONGEST_UNSIGNED` seconds; and chains of another log, which do not name these. A
truncated end is detected if a later chain (`beside`) or a checkpoint stored elsewhere proves the missing
lines. Otherwise it looks like the end of a killed process, and is a note, as is the number of lines after the
last checkpoint, which are not signed yet. A folder that was rewritten completely, with its key, is detected
by such a checkpoint, or by a public key that is stored elsewhere: give both.

Exit code 0: verified; 1: something is wrong, and the output states where; 2: it could not be tried. `prove`,
in another file, makes proofs that a record is in a log; this file checks them.
"""

from __future__ import annotations

import argparse
import base64
import bisect
import fcntl
import hashlib
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

SEGMENT_NAME = re.compile(r"(\d{8}T\d{6}\.\d{3}Z)-([0-9A-Z]{16})-(\d{6,})\.jsonl")
HEAD = re.compile(rb'\{"seq":([1-9]\d{0,17}),"prev":"([0-9a-f]{64})",')
SIGNATURE = re.compile(rb'(\{.*),"signature":"([A-Za-z0-9+/]{85}[AQgw]==)"\}', re.DOTALL)
DROPPED = "dropped.jsonl"
MOST_SHOWN, MOST_KEPT = 100, 10_000
"""How many faults are shown, and how many are stored; the others are counted."""
MOST_BESIDE = 32  # how many other chains the first line of a chain names
LONGEST_LINE = 128 * 1024  # no line of a log is longer: a record has 64 KiB at most
LEAF, NODE = b"\0", b"\1"  # the first byte of a tree's hash inputs
MOST_UNSIGNED, LONGEST_UNSIGNED = 1000, 60.0
"""The maximum lines and seconds between checkpoints. A log takes 10 seconds, if its disk is fast."""


# --- Ed25519, RFC 8032 ------------------------------------------------------------------------------------

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]  # X, Y, Z, T: x = X/Z, y = Y/Z, xy = T/Z (section 5.1.4)


def added(p: Point, q: Point) -> Point:
    """Return the sum of two points, which may be equal (section 5.1.4)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def decoded_point(data: bytes) -> Point | None:
    """Return the point that 32 bytes encode; None if there is none (section 5.1.3)."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x * ROOT_OF_MINUS_1 % P if (x * x - square) % P else x
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = decoded_point(b"\x58" + 31 * b"\x66")  # y is 4/5, x is even (section 5.1)


def is_signature(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether `signature` is the key's signature of `message`: [S]B = R + [k]A (section 5.1.7)."""
    key, nonce = decoded_point(public), decoded_point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or key is None or nonce is None or BASE is None or scalar >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    minus_key = (P - key[0], key[1], 1, P - key[3])
    # [S]B + [k](-A), both from the highest bit on, doubled together
    steps = {(1, 0): BASE, (0, 1): minus_key, (1, 1): added(BASE, minus_key)}
    result: Point = (0, 1, 1, 0)
    for bit in range(255, -1, -1):
        result = added(result, result)
        if (step := steps.get((scalar >> bit & 1, challenge >> bit & 1))) is not None:
            result = added(result, step)
    x, y, z, _ = result
    return (x - nonce[0] * z) % P == 0 and (y - nonce[1] * z) % P == 0


def public_keys(path: str) -> dict[str, bytes]:
    """Return the keys in a file of PEM blocks, by their names. Raises OSError, ValueError."""
    prefix = bytes.fromhex("302a300506032b6570032100")  # RFC 8410: an Ed25519 key of 32 bytes follows
    with open(path, "rb") as file:
        blocks = re.findall(rb"-----BEGIN PUBLIC KEY-----([^-]+)-----END PUBLIC KEY-----", file.read())
    keys = [base64.b64decode(block) for block in blocks]
    if not keys or not all(len(key) == 44 and key.startswith(prefix) for key in keys):
        raise ValueError(f"{path}: expected Ed25519 public keys in PEM")
    return {hashlib.sha256(key[12:]).hexdigest()[:16]: key[12:] for key in keys}


# --- Merkle trees, RFC 6962 -------------------------------------------------------------------------------


def tree_hash(kind: bytes, *parts: bytes) -> bytes:
    """Return the hash of a `LEAF`, or of a `NODE` and the two below it."""
    return hashlib.sha256(kind + b"".join(parts)).digest()


class Tree:
    """The root over leaves that are added one by one. Stores the roots of full trees, the largest first."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.count = 0
        self._roots: list[bytes] = []
        for data in leaves:
            self.add(data)

    def add(self, data: bytes) -> None:
        """Add a leaf, and merge trees while the last two have the same size."""
        node = tree_hash(LEAF, data)
        size = self.count
        while size & 1:
            node = tree_hash(NODE, self._roots.pop(), node)
            size >>= 1
        self._roots.append(node)
        self.count += 1

    def root(self) -> bytes:
        """Return the root; without leaves, the hash of the empty string."""
        if not self._roots:
            return hashlib.sha256(b"").digest()
        *others, node = self._roots
        for left in reversed(others):
            node = tree_hash(NODE, left, node)
        return node


def root_of_path(data: bytes, index: int, count: int, path: list[bytes]) -> bytes | None:
    """Return the root of a leaf and its path; None if the path's length is wrong (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < count:
        return None
    node, last = tree_hash(LEAF, data), count - 1
    for beside in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            node = tree_hash(NODE, beside, node)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            node = tree_hash(NODE, node, beside)
        index, last = index >> 1, last >> 1
    return node if last == 0 else None


class Report:
    """The findings: faults and notes, each once, how much was read, and how many faults are not stored."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.counts = dict.fromkeys(("chains", "segments", "records", "checkpoints", "lost"), 0)
        self.others, self._places = 0, set[str]()

    def fault(self, place: str, text: str) -> None:
        """Report a fault at a place, ``FILE:LINE``; only the first fault of a place is reported."""
        if place not in self._places and len(self.faults) < MOST_KEPT:
            self._places.add(place)
            self.faults.append(f"{place}: {text}")
        else:
            self.others += place not in self._places

    def note(self, place: str, text: str) -> None:
        self.notes.append(f"{place}: {text}")
        if len(self.notes) > MOST_KEPT:
            self.notes[MOST_KEPT:] = ["there are further notes"]


class Segment(NamedTuple):
    """A file of the folder, by its name."""

    name: str
    chain: str
    number: int


class Witness(NamedTuple):
    """What a source outside a chain states about a line: its number, its hash, and the source."""

    sequence: int
    digest: str
    source: str


Beginning = tuple[datetime, str, dict[str, Witness]]  # when a chain began, where, and its witnesses of others


def fields_of(line: bytes) -> dict[str, Any]:
    """Return the fields of a line; {} if it is not a JSON object."""
    try:
        fields = json.loads(line)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def signature_fault(line: bytes, keys: dict[str, bytes]) -> str:
    """Return what is wrong with the signature of a line; empty if it is valid."""
    parts = SIGNATURE.fullmatch(line)
    if parts is None:
        return "it is not signed"
    name = str(fields_of(line).get("key"))
    if name not in keys:
        return f"it is signed by another key, {name:.40}"
    return "" if is_signature(keys[name], parts[1], base64.b64decode(parts[2])) else "its signature is wrong"


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Return the lines of a file; a line that is longer than any of a log in pieces."""
    return iter(lambda: file.readline(LONGEST_LINE), b"")


def is_written(file: BinaryIO) -> bool:
    """Return whether the process that writes a segment still runs: it holds a lock on the segment."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:  # any other: a file system without locks
        return isinstance(error, BlockingIOError)
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


class ChainCheck:
    """Reads the segments of one chain in order, and compares each line with what is expected."""

    def __init__(self, chain: str, keys: dict[str, bytes], witnesses: list[Witness], report: Report) -> None:
        self.chain, self.keys = chain, keys
        self.counts, self.fault, self.note = report.counts, report.fault, report.note
        self.witnesses = sorted(witnesses, reverse=True)  # the next one is the last
        self.sequence, self.previous, self.place, self.last_line = 0, b"0" * 64, "", b""  # of the line before
        self.tree, self.unsigned = Tree(), b""  # over the lines since the last checkpoint, and their first
        self.is_clean = True  # no fault since then
        self.is_signed, self.was_late = False, False  # any line is signed; a line reports late ones
        self.vouched = 0  # the last line of this chain that a witness confirms
        self.closes = ""  # what the last line has closed
        self.missing: list[tuple[int, int, str]] = []  # skipped numbers, first and last, and where

    def skip(self, sequence: int, digest: str, closes: str) -> None:
        """Continue after a segment that retention has dropped."""
        self.sequence, self.previous, self.closes = sequence, digest.encode(), closes
        self.tree, self.is_clean, self.is_signed = Tree(), True, True
        self._ask_witnesses()

    def read(self, folder: str, segment: Segment, is_last: bool) -> None:
        """Read a segment. `is_last`: the chain has no later one."""
        with open(os.path.join(folder, segment.name), "rb") as file:
            is_open, number = is_last and is_written(file), 0
            line = file.readline(LONGEST_LINE)
            for following in itertools.chain(lines_of(file), (b"",)):
                if not line:
                    break
                number += 1
                place = f"{segment.name}:{number}"
                head = b'{"seq":%d,"prev":"%b",' % (self.sequence + 1, self.previous)
                if line.startswith(head) and line.endswith(b"}\n"):
                    is_own = line.startswith(b'"kind":"', len(head))
                    self._accept(place, line, is_own)
                    if is_own or number == 1:
                        self._check_own(place, line, segment, number)
                elif line.endswith(b"\n"):
                    self._unexpected(place, line, following)
                elif len(line) == LONGEST_LINE:
                    self.fault(place, "this is longer than any line of a log; what follows was not read")
                    break
                else:
                    self._unfinished(place, line, head, is_last, is_open)
                    break
                line = following
            self.counts["segments"] += 1
            if is_last and not is_open:  # it may have begun another one since the log was listed
                now = segments_in(folder).get(self.chain, [])
                is_open = any(each.number > segment.number for each in now)
            self._end_segment(segment, number, is_last, is_open)

    def _accept(self, place: str, line: bytes, is_own: bool) -> None:
        if self.closes == "chain":
            self.fault(place, "something follows the end of the chain")
        self.closes = ""
        digest = hashlib.sha256(line[:-1])
        self.previous = digest.hexdigest().encode()
        self.sequence += 1
        self.place, self.last_line = place, line
        self.counts["records"] += not is_own
        if not is_own or b'"kind":"checkpoint"' not in line[:120]:
            self.unsigned = line if not self.tree.count else self.unsigned
            self.tree.add(digest.digest())
        if self.witnesses and self.witnesses[-1].sequence <= self.sequence:
            self._ask_witnesses()

    def _ask_witnesses(self) -> None:
        """Compare the last line with the witnesses of it."""
        while self.witnesses and self.witnesses[-1].sequence <= self.sequence:
            known = self.witnesses.pop()
            if known.sequence == self.sequence and known.digest != self.previous.decode():
                text = f"{known.source} has another line {known.sequence}: the chain was replaced"
                self.fault(self.place or f"chain {self.chain}", text)
                self.is_clean = False
            self.vouched = known.sequence

    def _check_own(self, place: str, line: bytes, segment: Segment, number: int) -> None:
        """Check a line of the log itself; `number` is that of the line in the file."""
        fields = fields_of(line)
        kind = fields.get("kind")
        if (kind == "segment") != (number == 1):
            self.fault(place, "a segment begins with its own line, and has no other such line")
        elif kind == "segment":
            began = f"{re.sub('[-:]', '', str(fields.get('time')))}-{fields.get('chain')}"
            if (began, fields.get("segment")) != (segment.name.rpartition("-")[0], segment.number):
                self.fault(place, "this is not the segment that the file's name says")
        elif kind == "checkpoint":
            self._check_checkpoint(place, line, fields)
        elif kind == "gap":
            lost = fields.get("lost")
            self.counts["lost"] += lost if isinstance(lost, int) else 0
            self.note(place, f"{lost} records are missing here, the log says: {fields.get('reason')!r}")
        elif kind == "delayed":
            text = f"{fields.get('records')} records before this line were late: {fields.get('reason')!r}"
            self.note(place, text)
            self.was_late = True
        else:
            self.fault(place, "this line was changed: there are none of this kind")

    def _check_checkpoint(self, place: str, line: bytes, fields: dict[str, Any]) -> None:
        tree, was_clean = self.tree, self.is_clean
        self.tree, self.is_clean, self.is_signed, self.was_late = Tree(), True, True, False
        self.closes = str(fields.get("closes", ""))
        self.counts["checkpoints"] += 1
        wrong = signature_fault(line[:-1], self.keys)
        if wrong:
            self.fault(place, f"the checkpoint cannot be trusted: {wrong}")
        elif fields.get("chain") != self.chain:
            self.fault(place, "this is a checkpoint of another chain")
        elif was_clean and (fields.get("count"), fields.get("root")) != (tree.count, tree.root().hex()):
            self.fault(place, f"the {tree.count} lines before are not those of the checkpoint")

    def _unexpected(self, place: str, line: bytes, following: bytes) -> None:
        """Report why a whole line does not continue the chain, by comparing it with the next line."""
        self.is_clean = False
        expected = self.sequence + 1
        own, then = HEAD.match(line), HEAD.match(following)
        number, next_number = int(own[1]) if own else 0, int(then[1]) if then else 0
        if own is None or not line.endswith(b"}\n"):
            self.fault(place, f"line {expected} was changed, or this was inserted: it is not a line of a log")
            if next_number == expected:
                return
        elif number == expected:
            digest = hashlib.sha256(line[:-1]).hexdigest().encode()
            if then[2] == digest if then else not signature_fault(line[:-1], self.keys):  # it is unchanged
                self.fault(self.place or place, f"line {expected - 1} was changed: the next one says so")
            else:
                which = expected if following else f"{expected - 1} or {expected}"
                self.fault(place, f"line {which} was changed")
        elif next_number == expected + 1:
            self.fault(place, f"this is line {number}, not {expected}: swapped, or the number was changed")
        elif number > expected:
            if len(self.missing) < MOST_KEPT:
                self.missing.append((expected, number - 1, place))
            else:
                self.fault(place, f"lines {expected} to {number - 1} are missing before this line")
            expected = number
        else:
            self._out_of_order(place, number)
            return
        self._go_on(place, line, expected)

    def _go_on(self, place: str, line: bytes, number: int) -> None:
        """Accept a line as the one with this number."""
        fields = fields_of(line)
        self.sequence = number - 1
        self._accept(place, line, "kind" in fields)
        if fields.get("kind") == "checkpoint":
            self.tree, self.closes = Tree(), str(fields.get("closes", ""))

    def _out_of_order(self, place: str, number: int) -> None:
        index = bisect.bisect(self.missing, (number + 1,)) - 1
        first, last, where = self.missing[index] if index >= 0 else (0, 0, "")
        if first <= number <= last:
            self.fault(place, f"line {number} comes after line {self.sequence}: swapped")
            rest = [(first, number - 1, where), (number + 1, last, where)]
            self.missing[index : index + 1] = [each for each in rest if each[0] <= each[1]]
        else:
            self.fault(place, f"line {number} is here a second time")

    def _unfinished(self, place: str, line: bytes, head: bytes, is_last: bool, is_open: bool) -> None:
        """Distinguish an incomplete line of a killed process from one that was changed."""
        text = line.decode("utf-8", "replace")
        try:
            end = json.JSONDecoder().raw_decode(text)[1]
        except ValueError:
            end = len(text)
        if not is_last:
            self.fault(place, "the segment was cut: this line is unfinished, and the chain goes on elsewhere")
        elif not head.startswith(line[: len(head)]) or end < len(text):
            self.fault(place, f"line {self.sequence + 1} was changed: this is not the beginning of it")
        elif self.closes == "chain":
            self.fault(place, "something follows the end of the chain")
        elif not is_open:
            self.note(place, f"cut by a crash: {len(line)} bytes of line {self.sequence + 1}")

    def _end_segment(self, segment: Segment, lines: int, is_last: bool, is_open: bool) -> None:
        """Report how a chain has ended: closed by its process, killed, or truncated."""
        place = f"{segment.name}:{lines}"
        if not is_last:
            if self.closes != "segment":
                self.fault(place, "the segment was cut: no checkpoint closes it, and the chain goes on")
            return
        if lines and self.vouched < self.sequence:
            self._check_signed(place)
        if not is_open and not lines:
            self.note(place, "empty: cut by a crash before its first line")
        elif not is_open and self.closes != "chain":
            if self.last_line and not {"id", "kind"} & fields_of(self.last_line).keys():
                self.fault(self.place, f"line {self.sequence} was changed: it is not a line of a log")
            text = f"{self.tree.count} lines after the last checkpoint are chained, but not signed"
            if self.closes:
                text = "it has not begun its next segment, or that was removed"
            self.note(place, f"the process was killed; {text}")

    def _check_signed(self, place: str) -> None:
        """Report the lines at the end, which no witness confirms, if they should have been signed."""
        count, ends = self.tree.count, (self.unsigned, self.last_line)
        try:
            first, last = (datetime.fromisoformat(fields_of(line)["time"][:23]) for line in ends)
            seconds = (last - first).total_seconds()
        except (KeyError, TypeError, ValueError):
            seconds = 0.0
        if not self.is_signed and self.sequence > 1:
            self.fault(place, f"none of the {count} lines of this chain is signed")
        elif count > MOST_UNSIGNED or (count and seconds > LONGEST_UNSIGNED and not self.was_late):
            self.fault(
                place, f"the last {count} lines, of {seconds:.0f} s, are not signed: checkpoints are missing"
            )

    def finish(self) -> None:
        """Report missing lines, after the whole chain has been read."""
        for first, last, place in self.missing:
            what = f"line {first} is" if first == last else f"lines {first} to {last} are"
            self.fault(place, f"{what} missing before this line")
        while self.witnesses:
            known = self.witnesses.pop()
            text = f"cut: it ends with line {self.sequence}, and {known.source} has line {known.sequence}"
            self.fault(f"chain {self.chain}", text)


# --- a folder ---------------------------------------------------------------------------------------------


def segments_in(folder: str) -> dict[str, list[Segment]]:
    """Return the segments of a folder by their chains, in order."""
    chains: dict[str, list[Segment]] = {}
    for name in sorted(os.listdir(folder)):
        match = SEGMENT_NAME.fullmatch(name)
        if match:
            chains.setdefault(match[2], []).append(Segment(name, match[2], int(match[3])))
    return {chain: sorted(found, key=lambda each: each.number) for chain, found in chains.items()}


def signed_lines(path: str, kind: str, keys: dict[str, bytes], report: Report) -> Iterator[dict[str, Any]]:
    """Yield the fields of the signed lines of a kind in a file; report the others. `sha256` is the hash of
    the line, unless it has such a field."""
    with open(path, "rb") as file:
        for number, line in enumerate(map(bytes.strip, lines_of(file)), 1):
            place = f"{os.path.basename(path)}:{number}"
            fields = fields_of(line)
            wrong = signature_fault(line, keys)
            if line and not fields:
                report.note(place, "incomplete line: a failed write has left it, or it was changed")
            elif line and (wrong or fields.get("kind") != kind):
                report.fault(place, wrong or f"not a {kind}")
            elif line:
                yield {"sha256": hashlib.sha256(line).hexdigest(), **fields, "place": place}


def beginnings(folder: str, chains: dict[str, list[Segment]]) -> dict[str, Beginning]:
    """Return when chains began, and what their first lines state about other chains."""
    found = {}
    for segment in itertools.chain.from_iterable(chains.values()):
        if segment.number == 1:
            with open(os.path.join(folder, segment.name), "rb") as file:
                fields = fields_of(file.readline(LONGEST_LINE))
            source = f"{segment.name}:1"
            try:
                others = {
                    str(each["chain"]): Witness(int(each["seq"]), str(each["sha256"]), source)
                    for each in fields["beside"]
                }
                found[segment.chain] = datetime.fromisoformat(fields["time"][:23]), source, others
            except (KeyError, TypeError, ValueError):
                pass  # the line was changed: checking its chain reports it
    return found


def check_joined(began: dict[str, Beginning], report: Report) -> None:
    """Report a chain that does not name one that began a minute before, as if from another folder."""
    order = sorted((time, chain) for chain, (time, _, _) in began.items())
    for at, (time, chain) in enumerate(order):
        _, source, known = began[chain]
        for before, other in order[:at] if len(known) < MOST_BESIDE else ():
            if other not in known and chain not in began[other][2]:
                if (time - before).total_seconds() > LONGEST_UNSIGNED:
                    report.fault(source, f"it does not mention the chain {other}: two logs were joined")
                break


def verify(
    folder: str, key_file: str | None = None, checkpoint_files: Iterable[str] = (), into: Report | None = None
) -> Report:
    """Verify an audit log, and return the report, which is `into` if that is given. `key_file` has the public
    keys, by default the one in the folder; the other files have checkpoints that were stored elsewhere."""
    report, is_own = into or Report(), key_file is None
    if key_file is None:
        names = [name for name in os.listdir(folder) if name.endswith(".pub")]
        if len(names) != 1:
            raise ValueError(f"{folder}: expected one public key in it, found {len(names)}: name a file")
        key_file = os.path.join(folder, names[0])
        report.note(key_file, "the public key is the folder's own: whoever rewrites the log can replace it")
    keys = public_keys(key_file)
    chains = segments_in(folder)
    began = beginnings(folder, chains)
    check_joined(began, report)
    witnesses: dict[str, list[Witness]] = {}
    for chain, known in itertools.chain.from_iterable(each.items() for _, _, each in began.values()):
        witnesses.setdefault(chain, []).append(known)
    for path in checkpoint_files:
        for kept in signed_lines(path, "checkpoint", keys, report):
            witness = Witness(kept["seq"], kept["sha256"], f"the checkpoint {kept['place']}")
            witnesses.setdefault(kept["chain"], []).append(witness)
    dropped: dict[str, dict[int, dict[str, Any]]] = {}
    if os.path.exists(os.path.join(folder, DROPPED)):
        for each in signed_lines(os.path.join(folder, DROPPED), "dropped", keys, report):
            dropped.setdefault(each["chain"], {})[each["segment"]] = each
    for chain, found in sorted(chains.items()):
        check = ChainCheck(chain, keys, witnesses.pop(chain, []), report)
        verify_chain(folder, check, found, dropped.get(chain, {}), report)
    for chain, known_lines in witnesses.items():
        verify_absent(chain, known_lines, dropped.get(chain, {}), report)
    if not is_own and not chains and not dropped:
        report.fault(folder, "there is no log, and so nothing that the key has signed")
    return report


def verify_chain(
    folder: str, check: ChainCheck, found: list[Segment], dropped: dict[int, dict[str, Any]], report: Report
) -> None:
    """Verify the segments of one chain; those that retention has dropped are skipped."""
    report.counts["chains"] += 1
    number = 1
    for segment in found:
        while number < segment.number and number in dropped:
            gone = dropped[number]
            check.skip(gone["to"] or 0, gone["sha256"], str(gone.get("closes") or ""))
            report.note(gone["file"], "dropped by retention")
            number += 1
        if number < segment.number:
            report.fault(segment.name, f"segments {number} to {segment.number - 1} of its chain are missing")
        check.read(folder, segment, segment is found[-1])
        number = segment.number + 1
    check.finish()


def verify_absent(
    chain: str, witnesses: list[Witness], dropped: dict[int, dict[str, Any]], report: Report
) -> None:
    """A chain that has witnesses has no segment left: report whether retention has dropped all of it."""
    hashes = {gone["to"] or 0: gone["sha256"] for gone in dropped.values()}
    for known in witnesses:
        if known.sequence > max(hashes, default=0):
            report.fault(f"chain {chain}", f"missing: {known.source} knows its line {known.sequence}")
        elif hashes.get(known.sequence, known.digest) != known.digest:
            report.fault(
                f"chain {chain}", f"{known.source} has another line {known.sequence}: it was replaced"
            )


def check_proof(proof: str, keys: dict[str, bytes], record: bytes | None = None) -> str:
    """Return what a proof proves. `record` is the line that it is for. Raises ValueError if it is invalid."""
    head, _, tail = proof.strip().partition(',"checkpoint":')
    try:
        json.loads(proof)  # complete, and nothing after it
        fields = json.loads(head + "}")
        line = tail[:-1].encode()
        checkpoint = json.loads(line)
        path = base64.b64decode(fields["path"], validate=True)
        nodes = [path[at : at + 32] for at in range(0, len(path), 32)]
        leaf, index, count = bytes.fromhex(fields["sha256"]), int(fields["index"]), int(checkpoint["count"])
        root, identifier, is_one = checkpoint["root"], str(fields["id"]), checkpoint["kind"] == "checkpoint"
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"not a proof: {error}") from None
    wrong = signature_fault(line, keys) or ("" if is_one else "it is none")
    if wrong:
        raise ValueError(f"the checkpoint cannot be trusted: {wrong}")
    reached = root_of_path(leaf, index, count, nodes)
    if reached is None or reached.hex() != root:
        raise ValueError("the path does not lead to the checkpoint's root")
    where = f"checkpoint {checkpoint['number']} of chain {checkpoint['chain']}, {checkpoint['time']}"
    if record is None:
        return f"a line with the SHA-256 {leaf.hex()} is under {where}"
    if hashlib.sha256(record.rstrip(b"\n")).digest() != leaf:
        raise ValueError("the record is not the line that the proof is for")
    if fields_of(record).get("id") != identifier:
        raise ValueError(f"the record is not {identifier!r:.80}")
    return f"{identifier} is under {where}, as it is in the file"


# --- the command ------------------------------------------------------------------------------------------

USAGE = """%(prog)s FOLDER [--public-key FILE] [--checkpoint FILE]…
       %(prog)s check PROOF --public-key FILE [--record FILE]"""


def main(arguments: list[str], name: str = "verify.py") -> int:
    """Run the command; return the exit code. Raises SystemExit for wrong arguments."""
    parser = argparse.ArgumentParser(name, USAGE)
    parser.add_argument("words", nargs="+", metavar="FOLDER", help="the folder of the log")
    parser.add_argument("--public-key", metavar="FILE", help="the public key, kept elsewhere")
    parser.add_argument("--checkpoint", metavar="FILE", action="append", default=[], help="kept elsewhere")
    parser.add_argument("--record", metavar="FILE", help="the line that a proof is for")
    chosen = parser.parse_args(arguments)
    try:
        match chosen.words:
            case ["check", path] if chosen.public_key:
                return show_proof(path, chosen.public_key, chosen.record)
            case [folder]:
                return show(verify(folder, chosen.public_key, chosen.checkpoint))
        parser.error("expected a folder, or 'check' with a proof and a key")
    except (OSError, ValueError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2


def show_proof(path: str, key_file: str, record_file: str | None) -> int:
    """Print what a proof proves, or what is wrong with it."""
    keys, record = public_keys(key_file), None
    if record_file:
        with open(record_file, "rb") as data:
            record = data.read()
    with open(path, encoding="utf-8") as file:
        proof = file.read()
    try:
        print(check_proof(proof, keys, record))
    except ValueError as error:
        print(f"wrong: {error}")
        return 1
    return 0


def show(report: Report) -> int:
    """Print a report; return the exit code."""
    for text in report.notes:
        print(f"note: {text}")
    for text in report.faults[:MOST_SHOWN]:
        print(f"wrong: {text}")
    if len(report.faults) > MOST_SHOWN:
        print(f"wrong: {len(report.faults) - MOST_SHOWN + report.others} more")
    counted = ", ".join(f"{count:,} {name}" for name, count in report.counts.items())
    print(f"{'WRONG' if report.faults else 'verified'}: {counted}")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
