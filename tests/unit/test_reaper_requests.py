"""A request to a reaper that cannot be made leaves no descriptor open."""

from __future__ import annotations

import errno
import os
import socket
import struct

import pytest

from fastrpc.processes import reapers
from fastrpc.processes.reapers import INLINE_LIMIT, RUN, Reaper

LARGE = b"x" * (INLINE_LIMIT + 1)


def descriptors() -> list[str]:
    return os.listdir("/dev/fd")


def test_counts_that_no_frame_can_hold() -> None:
    reaper = Reaper.__new__(Reaper)
    reaper.socket, other = socket.socketpair()
    with reaper.socket, other:
        before = descriptors()
        with pytest.raises(struct.error):
            reaper.request(RUN, counts=(2**40, 0), payload=LARGE)
        assert len(descriptors()) == len(before)


def test_a_payload_for_which_no_memory_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(reapers, "write_all", fail)
    before = descriptors()
    with pytest.raises(OSError, match="no space"):
        reapers.anonymous_file(LARGE)
    assert len(descriptors()) == len(before)
