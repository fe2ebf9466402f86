"""Whatever is changed in an audit log is found, and the place is named: G9.

The log has two segments, of a process that has ended its chain, and one of another process. What is flipped,
dropped, doubled, swapped, cut or replaced is named by file and line. What the folder alone cannot tell, a
checkpoint that is kept elsewhere does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc._core.audit_lines import MerkleTree
from fastrpc.guard.audit import AuditLog, verify, writer
from fastrpc.guard.audit.chain import AuditChain
from fastrpc.guard.audit.folder_target import FolderTarget
from fastrpc.guard.audit.prove import inclusion_path, prove

Lines = list[bytes]


def write(folder: str, numbers: range, **options: object) -> list[str]:
    log = AuditLog(folder, checkpoint_records=12, segment_bytes=3500, **options)
    ids = [log.append({"actor": "ada", "tool": "memory.search", "number": number}) for number in numbers]
    log.close()
    return ids


class Original:
    """A log that is right, its files in the order of their names, and the checkpoints that were kept."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "audit"
        self.kept = place / "kept" / "checkpoints.jsonl"
        self.key = place / "key.pub"
        targets = [FolderTarget(str(self.kept.parent))]
        self.ids = write(str(self.folder), range(30), targets=targets)
        self.ids += write(str(self.folder), range(30, 40), targets=targets)
        shutil.copy(self.folder / "signing-key.pem.pub", self.key)
        self.segments = sorted(path.name for path in self.folder.glob("2*.jsonl"))
        self.chains = list(dict.fromkeys(name.split("-")[1] for name in self.segments))
        self.files = {name: (self.folder / name).read_bytes() for name in self.segments}


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    with tempfile.TemporaryDirectory() as place:
        found = Original(Path(place))
        assert len(found.chains) == 2
        assert len(found.segments) > 3
        yield found


class Copy:
    """A copy of the log, to be changed."""

    def __init__(self, original: Original, place: str) -> None:
        self.original = original
        self.folder = os.path.join(place, "audit")
        shutil.copytree(original.folder, self.folder)

    def change(self, name: str, change: Callable[[Lines], Lines]) -> None:
        path = Path(self.folder, name)
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    def verify(self, *, kept: bool = False) -> verify.Report:
        files = [str(self.original.kept)] if kept else []
        return verify.verify(self.folder, str(self.original.key), files)


@pytest.fixture
def copy(original: Original, tmp_path: Path) -> Copy:
    return Copy(original, str(tmp_path))


def places(report: verify.Report) -> list[tuple[str, int]]:
    found = (re.match(r"(2\S+\.jsonl):(\d+): ", fault) for fault in report.faults)
    return [(match[1], int(match[2])) for match in found if match]


def test_the_log_itself_is_right(copy: Copy) -> None:
    report = copy.verify(kept=True)
    assert (report.faults, report.notes) == ([], [])
    assert report.counts["records"] == 40
    assert report.counts["chains"] == 2


# --- one thing is changed ---------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=150)
@given(data=st.data())
def test_any_flipped_bit_is_found_and_its_line_named(original: Original, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(original.segments))
    text = original.files[name]
    at = data.draw(st.integers(0, len(text) - 1))
    bit = data.draw(st.integers(0, 7))
    flipped = bytearray(text)
    flipped[at] ^= 1 << bit
    line = text.count(b"\n", 0, at) + 1
    with tempfile.TemporaryDirectory() as place:
        copy = Copy(original, place)
        Path(copy.folder, name).write_bytes(flipped)
        report = copy.verify()
    assert any(file == name and line <= where <= line + 1 for file, where in places(report)), report.faults


@pytest.mark.long
def test_a_change_in_any_byte_is_found(tmp_path: Path) -> None:
    """In a log so small that each byte's turn comes: the head of a segment, a record, the last checkpoint."""
    write(str(tmp_path), range(1))
    (path,) = tmp_path.glob("2*.jsonl")
    text = path.read_bytes()
    tail = len(text) - 20  # the end of the last signature, the brace, the newline
    bits = [(at, at % 8) for at in range(tail)] + [
        (at, bit) for at in range(tail, len(text)) for bit in range(8)
    ]
    for at, bit in bits:
        flipped = bytearray(text)
        flipped[at] ^= 1 << bit
        path.write_bytes(flipped)
        assert verify.verify(str(tmp_path)).faults, (at, bit)
    path.write_bytes(text)
    assert verify.verify(str(tmp_path)).faults == []


@settings(max_examples=60)
@given(data=st.data())
def test_a_record_that_is_dropped_doubled_or_swapped_is_named(
    original: Original, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(original.segments))
    count = original.files[name].count(b"\n")
    at = data.draw(st.integers(0, count - 2))
    how = data.draw(st.sampled_from(["drop", "double", "swap", "move"]))
    other = data.draw(st.integers(0, count - 1))

    def change(lines: Lines) -> Lines:
        if how == "drop":
            return [*lines[:at], *lines[at + 1 :]]
        if how == "double":
            return [*lines[: at + 1], *lines[at:]]
        if how == "swap":
            lines[at], lines[at + 1] = lines[at + 1], lines[at]
            return lines
        line = lines.pop(at)
        return [*lines[:other], line, *lines[other:]]

    with tempfile.TemporaryDirectory() as place:
        copy = Copy(original, place)
        copy.change(name, change)
        report = copy.verify()
        is_changed = Path(copy.folder, name).read_bytes() != original.files[name]
    words = {"drop": "missing", "double": "second time|follows the end", "swap": "", "move": ""}[how]
    if is_changed:
        found = [fault for fault in report.faults if fault.startswith(name) and re.search(words, fault)]
        assert found, report.faults
        near = {at + 1, at + 2, other + 1, other + 2, at, other}
        assert near & {line for file, line in places(report) if file == name}, report.faults
    else:
        assert report.faults == []


@pytest.mark.parametrize("piece", [1, 10, 200])
def test_a_segment_that_is_cut_is_named_unless_it_is_the_chains_last(copy: Copy, piece: int) -> None:
    name = copy.original.segments[0]
    text = copy.original.files[name]
    Path(copy.folder, name).write_bytes(text[:-piece])
    assert name in [file for file, _ in places(copy.verify())]


@pytest.mark.parametrize("lines", [1, 5])
def test_a_segment_that_is_cut_between_lines_is_named(copy: Copy, lines: int) -> None:
    name = copy.original.segments[0]
    copy.change(name, lambda all_lines: all_lines[:-lines])
    report = copy.verify()
    assert any("cut" in fault or "missing" in fault for fault in report.faults), report.faults


@pytest.mark.parametrize("piece", [1, 100, 1000])
def test_a_first_chain_whose_end_is_cut_off_is_known_by_the_one_that_came_later(
    copy: Copy, piece: int
) -> None:
    first = [name for name in copy.original.segments if copy.original.chains[0] in name][-1]
    Path(copy.folder, first).write_bytes(copy.original.files[first][:-piece])
    report = copy.verify()
    assert any("cut: it ends with line" in fault for fault in report.faults), report.faults


@pytest.mark.parametrize("piece", [1, 100, 1000])
def test_an_end_that_is_cut_off_looks_like_a_crash_but_not_to_who_has_kept_checkpoints(
    copy: Copy, piece: int
) -> None:
    last = copy.original.segments[-1]
    Path(copy.folder, last).write_bytes(copy.original.files[last][:-piece])
    report = copy.verify()
    assert report.faults == []
    assert any("cut by a crash" in note for note in report.notes)
    assert any("the process was killed" in note for note in report.notes)
    report = copy.verify(kept=True)
    assert any("cut: it ends with line" in fault for fault in report.faults), report.faults


def test_something_after_the_end_is_named(copy: Copy) -> None:
    copy.change(copy.original.segments[-1], lambda lines: [*lines, b'{"seq":1}\n'])
    assert copy.verify().faults
    copy.change(copy.original.segments[-1], lambda lines: [*lines[:-1], b'{"seq":'])
    assert copy.verify().faults


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_file_that_is_missing_is_named(copy: Copy, which: int) -> None:
    name = copy.original.segments[which]
    os.unlink(os.path.join(copy.folder, name))
    report = copy.verify(kept=True)
    assert any("missing" in fault or "cut" in fault for fault in report.faults), report.faults


def test_a_file_under_another_name_is_named(copy: Copy) -> None:
    name = copy.original.segments[-1]
    os.rename(os.path.join(copy.folder, name), os.path.join(copy.folder, name.replace("000001", "000003")))
    assert copy.verify().faults


def test_a_root_over_other_lines_is_named_also_if_it_is_signed(tmp_path: Path, monkeypatch) -> None:
    class OverOtherLines(AuditChain):
        @property
        def tree(self) -> SimpleNamespace:
            return SimpleNamespace(count=super().tree.count, root=lambda: bytes(32))

    monkeypatch.setattr(writer, "AuditChain", OverOtherLines)
    write(str(tmp_path), range(3))
    (name,) = [path.name for path in tmp_path.glob("2*.jsonl")]
    words = "lines before are not those of the checkpoint"
    assert verify.verify(str(tmp_path)).faults == [f"{name}:2: the 1 {words}", f"{name}:6: the 3 {words}"]


# --- signatures are missing where they are due ------------------------------------------------------------


def rechained(lines: Lines) -> Lines:
    """Lines as their writer would have numbered and linked them."""
    found: Lines = []
    previous = b"0" * 64
    for number, line in enumerate(lines, 1):
        head = verify.HEAD.match(line)
        assert head is not None
        found.append(b'{"seq":%d,"prev":"%b",%b' % (number, previous, line[head.end() :]))
        previous = sha256(found[-1][:-1]).hexdigest().encode()
    return found


def is_checkpoint(line: bytes) -> bool:
    return b'"kind":"checkpoint"' in line


def one_chain(folder: Path, count: int, **options: object) -> Path:
    log = AuditLog(str(folder), **options)
    for number in range(count):
        log.append({"number": number, "time": f"2026-03-01T00:00:{number % 60:02d}.000Z"})
    log.close()
    (path,) = folder.glob("2*.jsonl")
    return path


def strip(path: Path, keeps: Callable[[int, bytes], bool]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rechained([line for at, line in enumerate(lines) if keeps(at, line)])))


def faults(folder: Path) -> list[str]:
    return verify.verify(str(folder), str(folder / "signing-key.pem.pub")).faults


@pytest.mark.parametrize("count", [1, 20])
def test_a_chain_without_checkpoints_is_found(tmp_path: Path, count: int) -> None:
    path = one_chain(tmp_path, count)
    assert faults(tmp_path) == []
    strip(path, lambda at, line: not is_checkpoint(line))
    (fault,) = faults(tmp_path)
    assert f"none of the {count + 1} lines of this chain is signed" in fault


def test_all_chains_without_checkpoints_are_found(original: Original, tmp_path: Path) -> None:
    copy = Copy(original, str(tmp_path))
    for name in original.segments:
        copy.change(name, lambda lines: [line for line in lines if not is_checkpoint(line)])
    assert any("none of the" in fault for fault in copy.verify().faults)


@pytest.mark.parametrize("which", [1, 2, 3])
def test_a_checkpoint_that_is_missing_before_another_one_is_found(tmp_path: Path, which: int) -> None:
    path = one_chain(tmp_path, 40, checkpoint_records=10)
    places = [at for at, line in enumerate(path.read_bytes().splitlines()) if is_checkpoint(line)]
    strip(path, lambda at, line: at != places[which])
    assert faults(tmp_path)


def test_so_many_lines_or_such_a_long_time_without_a_checkpoint_are_found(tmp_path: Path) -> None:
    many = one_chain(tmp_path / "many", 2500)
    strip(many, lambda at, line: at < 2 or not is_checkpoint(line))
    assert any("the last 2500 lines" in fault for fault in faults(many.parent))
    long = one_chain(tmp_path / "long", 10)
    text = long.read_bytes().replace(b"00:00:09", b"00:02:09")
    long.write_bytes(b"".join(rechained(text.splitlines(keepends=True)[:-1])))
    assert faults(long.parent)
    strip(long, lambda at, line: True)
    assert any("of 129 s, are not signed" in fault for fault in faults(long.parent))


def test_what_a_killed_process_has_not_signed_a_later_one_vouches_for(tmp_path: Path) -> None:
    path = one_chain(tmp_path, 5)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))  # its end is not there
    assert faults(tmp_path) == []
    log = AuditLog(str(tmp_path))
    log.append({"number": 6})
    log.close()
    assert faults(tmp_path) == []
    strip(path, lambda at, line: not is_checkpoint(line))
    assert any("the chain was replaced" in fault or "cut:" in fault for fault in faults(tmp_path))


def test_checkpoints_by_another_key_are_found(tmp_path: Path) -> None:
    mine, others = tmp_path / "mine", tmp_path / "others"
    one_chain(mine, 5)
    one_chain(others, 5)
    for path in others.glob("2*.jsonl"):
        shutil.copy(path, mine)
    assert any("signed by another key" in fault for fault in faults(mine))


# --- a whole chain is replaced ----------------------------------------------------------------------------


def forge(copy: Copy, *, with_key: bool) -> None:
    """Replace the log by one that is right in itself."""
    for path in Path(copy.folder).iterdir():
        if not (with_key and "key" in path.name):
            path.unlink()
    write(copy.folder, range(100, 140))


def test_a_forged_log_is_found_by_a_public_key_that_was_kept(copy: Copy) -> None:
    forge(copy, with_key=False)
    assert verify.verify(copy.folder).faults == []  # by its own key it is right
    assert any("signed by another key" in fault for fault in copy.verify().faults)


def test_a_forged_log_with_the_stolen_key_is_found_by_checkpoints_that_were_kept(copy: Copy) -> None:
    forge(copy, with_key=True)
    assert copy.verify().faults == []
    report = copy.verify(kept=True)
    assert sum("missing: the checkpoint" in fault for fault in report.faults) >= 1, report.faults


def test_a_chain_that_was_rewritten_under_its_own_name_is_found_by_checkpoints_that_were_kept(
    copy: Copy, monkeypatch
) -> None:
    from fastrpc.guard.audit import writer

    for path in Path(copy.folder).glob("2*.jsonl"):
        path.unlink()
    names = iter(copy.original.chains)
    monkeypatch.setattr(writer, "new_chain_id", lambda now: next(names))
    write(copy.folder, range(100, 130))
    write(copy.folder, range(130, 140))
    assert copy.verify().faults == []
    report = copy.verify(kept=True)
    assert any("has another line" in fault for fault in report.faults), report.faults


def test_a_kept_checkpoint_that_was_changed_proves_nothing_and_is_named(copy: Copy, tmp_path: Path) -> None:
    kept = tmp_path / "checkpoints.jsonl"
    kept.write_bytes(copy.original.kept.read_bytes().replace(b'"number":2', b'"number":3', 1))
    report = verify.verify(copy.folder, str(copy.original.key), [str(kept)])
    assert report.faults == ["checkpoints.jsonl:2: its signature is wrong"]


# --- proofs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [0, 1, 15, 29, 39])
def test_a_proof_shows_that_a_record_is_under_a_checkpoint(copy: Copy, which: int) -> None:
    identifier = copy.original.ids[which]
    proof = prove(copy.folder, identifier)
    keys = verify.public_keys(str(copy.original.key))
    lines = b"\n".join(copy.original.files.values()).split(b"\n")
    (record,) = [line for line in lines if identifier.encode() in line]
    assert identifier in verify.check_proof(proof, keys, record)
    other = next(line for line in lines if copy.original.ids[which - 1].encode() in line)
    with pytest.raises(ValueError, match="not the line that the proof is for"):
        verify.check_proof(proof, keys, other)
    with pytest.raises(ValueError, match="not 'audit_other'"):
        verify.check_proof(proof.replace(identifier, "audit_other"), keys, record)


@settings(max_examples=300)
@given(data=st.data())
def test_a_changed_proof_is_refused(original: Original, data: st.DataObject) -> None:
    identifier = original.ids[3]
    proof = prove(str(original.folder), identifier).encode()
    keys = verify.public_keys(str(original.key))
    (record,) = [
        line for line in original.files[original.segments[0]].split(b"\n") if identifier.encode() in line
    ]
    at = data.draw(st.integers(0, len(proof) - 1))
    changed = bytearray(proof)
    changed[at] ^= 1 << data.draw(st.integers(0, 6))
    try:
        text = changed.decode()
        says = verify.check_proof(text, keys, record)
    except ValueError:
        return
    assert says == verify.check_proof(proof.decode(), keys, record)  # white space, or unused bits of base64
    assert json.loads(text)["checkpoint"] == json.loads(proof)["checkpoint"]


def test_a_proof_has_at_most_a_kilobyte_in_a_log_of_a_thousand_million_records(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path))
    identifiers = [log.append({"number": number}) for number in range(1100)]
    assert log.flush()
    writer = log._writer
    writer.chain.sequence, writer.chain.checkpoints, writer.number = 10**9, 10**6, 10**4
    for number in range(3000):
        identifiers.append(log.append({"number": number}))
    log.close()
    proof = prove(str(tmp_path), identifiers[3000])
    assert '"count":1000,' in proof
    assert len(proof.encode()) <= 1024
    verify.check_proof(proof, verify.public_keys(str(tmp_path / "signing-key.pem.pub")))


def test_there_is_no_proof_before_a_checkpoint_and_none_of_what_is_not_there(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path))
    identifier = log.append({"number": 1})
    assert log.flush()
    with pytest.raises(LookupError, match="no checkpoint after it yet"):
        prove(str(tmp_path), identifier)
    log.close()
    assert prove(str(tmp_path), identifier)
    with pytest.raises(LookupError, match="no record"):
        prove(str(tmp_path), "audit_none")


@given(leaves=st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=70), data=st.data())
def test_paths_lead_to_the_root_that_the_log_writes(leaves: list[bytes], data: st.DataObject) -> None:
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    index = data.draw(st.integers(0, len(leaves) - 1))
    path = inclusion_path(leaves, index)
    assert verify.root_of_path(leaves[index], index, len(leaves), path) == tree.root()
    assert verify.root_of_path(b"other", index, len(leaves), path) != tree.root()
    assert verify.root_of_path(leaves[index], index, len(leaves), [*path, b"x" * 32]) is None


def test_the_root_is_that_of_rfc_6962() -> None:
    """The tree over the eight inputs that the certificate transparency project tests with."""
    inputs = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ]
    tree = MerkleTree()
    assert tree.root().hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    for each in inputs:
        tree.add(bytes.fromhex(each))
    assert tree.root().hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


# --- signatures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "message", "signature"),
    [  # RFC 8032, section 7.1
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
            "d25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
            "387b2eaeb4302aeeb00d291612bb0c00",
        ),
    ],
)
def test_signatures_of_the_rfc_are_right(key: str, message: str, signature: str) -> None:
    public, text, signed = bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature)
    assert verify.is_signature(public, text, signed)
    assert not verify.is_signature(public, text + b"x", signed)
    scalar = int.from_bytes(signed[32:], "little") + verify.ORDER  # the same point, but malleable
    assert not verify.is_signature(public, text, signed[:32] + scalar.to_bytes(32, "little"))


@settings(max_examples=50)
@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=200), flip=st.integers(0, 511))
def test_signatures_are_those_that_cryptography_takes(seed: bytes, message: bytes, flip: int) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(seed)
    public = key.public_key().public_bytes_raw()
    signature = key.sign(message)
    assert verify.is_signature(public, message, signature)
    changed = bytearray(signature)
    changed[flip // 8] ^= 1 << flip % 8
    with pytest.raises(InvalidSignature):
        key.public_key().verify(bytes(changed), message)
    assert not verify.is_signature(public, message, bytes(changed))


# --- the file by itself -----------------------------------------------------------------------------------


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the verifier, without fastrpc and without anything that is installed."""
    command = [sys.executable, "-I", "-S", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_verifier_runs_by_itself(copy: Copy, tmp_path: Path) -> None:
    script = str(shutil.copy(verify.__file__, tmp_path / "verify.py"))
    key, kept = str(copy.original.key), str(copy.original.kept)
    done = run(script, copy.folder, "--public-key", key, "--checkpoint", kept)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("verified: 2 chains, ")
    proof, record = tmp_path / "proof.json", tmp_path / "record"
    proof.write_text(prove(copy.folder, copy.original.ids[5]))
    lines = copy.original.files[copy.original.segments[0]].split(b"\n")
    record.write_bytes(next(line for line in lines if copy.original.ids[5].encode() in line) + b"\n")
    done = run(script, "check", str(proof), "--public-key", key, "--record", str(record))
    assert (done.returncode, done.stderr) == (0, "")
    assert "is under checkpoint 2 of chain" in done.stdout
    copy.change(copy.original.segments[0], lambda lines: [*lines[:4], *lines[5:]])
    done = run(script, copy.folder, "--public-key", key)
    assert done.returncode == 1
    assert f"wrong: {copy.original.segments[0]}:5: line 5 is missing before this line" in done.stdout
    assert run(script, str(tmp_path / "none")).returncode == 2
    assert run(script).returncode == 2
