"""What a segment of the audit log leaves in the kernel's cache: no large amounts, and never a torn page."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fastrpc.guard.audit import segments

PAGE = os.sysconf("SC_PAGESIZE")


def written(folder: Path, *sizes: int) -> int:
    """Write parts of such sizes into a segment, each synchronised; return the size of its file."""
    folder.mkdir(mode=0o700, exist_ok=True)
    segment = segments.OpenSegment(str(folder), segments.name_of("2026-04-22T10:15:23.847Z", "A" * 16, 1))
    for size in sizes:
        segment.write(b"x" * (size - 1) + b"\n")
        segment.sync()
    segment.close()
    return segment.size


def test_what_is_on_disk_leaves_the_cache_in_whole_pages_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    monkeypatch.setattr(
        os, "posix_fadvise", lambda _, at, size, advice: dropped.append((at, size)), raising=False
    )
    large = segments.UNCACHE_BYTES + PAGE // 2
    written(tmp_path, 700, 700)
    assert dropped == [], "a small part is read again sooner than it pays to drop it"
    written(tmp_path / "another", large, 700, large)
    first, second = dropped
    assert first == (0, segments.UNCACHE_BYTES)
    assert second[0] == first[1]
    assert sum(second) <= 2 * large + 700 < sum(second) + PAGE
    assert sum(second) % PAGE == 0


def test_a_kernel_that_does_not_take_the_advice_is_no_failure_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
    assert written(tmp_path, 2 * segments.UNCACHE_BYTES) == 2 * segments.UNCACHE_BYTES
