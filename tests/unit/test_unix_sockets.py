"""Unix sockets are reached at every path that a folder can have, and no descriptor stays behind."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path

import pytest

from fastrpc import unix_sockets
from fastrpc.unix_sockets import LONGEST_ADDRESS, SocketFolder

linux_alone = pytest.mark.skipif(
    sys.platform != "linux", reason="Linux alone reaches a socket by its folder's descriptor"
)


def folder_below(base: Path, bytes: int) -> str:
    """Make a folder whose path has so many bytes, in parts that a file system allows."""
    path = os.path.join(str(base), "")
    while (room := bytes - len(os.fsencode(path))) > 200:
        path = os.path.join(path, "d" * 99)
    path = os.path.join(path, "e" * max(room - 1, 1))
    os.makedirs(path)
    return path


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@linux_alone
@pytest.mark.parametrize("length", [*range(95, 112), 200, 1000, 3000])
def test_a_socket_is_bound_and_reached_however_long_the_path_of_its_folder_is(
    tmp_path: Path, length: int
) -> None:
    folder = folder_below(tmp_path, length)
    before = open_descriptors()
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as caller:
        with SocketFolder(folder) as reached:
            listener.bind(reached.address("s"))
            listener.listen()
        with SocketFolder(folder) as reached:
            caller.connect(reached.address("s"))
        assert os.listdir(folder) == ["s"]
    assert open_descriptors() == before


def test_a_path_that_fits_is_its_own_address() -> None:
    name = "n" * (LONGEST_ADDRESS - len("/a/"))
    with SocketFolder("/a") as reached:
        assert reached.address(name) == f"/a/{name}"


@linux_alone
def test_a_socket_in_the_working_folder_needs_no_folder_in_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder_below(tmp_path, 200))
    with SocketFolder("") as reached:
        assert reached.address("s") == "s"


@pytest.mark.parametrize("system", ["this", "one without descriptors in its file system"])
def test_a_name_without_an_address_is_refused_in_words(
    tmp_path: Path, system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, name = str(tmp_path), "n" * LONGEST_ADDRESS
    if system != "this":
        monkeypatch.setattr(unix_sockets, "DESCRIPTORS", str(tmp_path / "none"))
        folder, name = folder_below(tmp_path, 200), "s"
    with SocketFolder(folder) as reached, pytest.raises(OSError, match="too long for the address") as refused:
        reached.address(name)
    assert (refused.value.errno, refused.value.filename) == (errno.ENAMETOOLONG, os.path.join(folder, name))
