"""The tokens of a file, by a clock of our own: for how long they are good when it can be used no more."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fastrpc import diagnostics
from fastrpc.transports.http.auth import TokenFile
from fastrpc.transports.http.guard import Refused

TOKEN, OTHER = "a-token-of-the-first-caller", "a-token-of-the-second-caller"


class Clock:
    """A clock that does not advance."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A token file, what is logged of it, and the clock that it goes by."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.logged: list[tuple[str, str]] = []
        self.clock = Clock()
        monkeypatch.setattr(diagnostics, "write", lambda level, message: self.logged.append((level, message)))
        self.write(TOKEN)
        self.file = TokenFile(str(path), self.clock)

    def write(self, *tokens: str) -> None:
        if self.path.is_dir():
            self.path.rmdir()
        self.path.write_text("".join(f"{token}\n" for token in tokens))
        self.path.chmod(0o600)

    def opens(self, token: str = TOKEN) -> bool:
        return self.file.known(token.encode()) is not None

    def status(self) -> int:
        """What a token is answered with that the file does not know now."""
        try:
            asyncio.run(self.file.find(TOKEN.encode()))
        except Refused as refused:
            return refused.status
        return 401


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(tmp_path / "tokens", monkeypatch)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "it has gone": (lambda path: path.unlink(), "cannot read .*: No such file or directory"),
    "others may read it": (lambda path: path.chmod(0o604), r"others may use .* \(mode 0604\)"),
    "a line is no token": (
        lambda path: path.write_text("short\n"),
        "line 1 of .*: the token has 5 characters",
    ),
    "it is too long": (lambda path: path.write_text("#" * 1_100_000), ".* is longer than 1048576 bytes"),
    "it is a folder": (to_folder, "cannot read .*: a folder, not a regular file"),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_file_that_can_be_used_no_more_is_said_and_opens_nothing_after_a_minute(
    watched: Watched, how: str
) -> None:
    spoil, words = SPOILED[how]
    watched.clock.now += 10
    assert watched.opens()
    spoil(watched.path)
    for second in range(1, 60):  # whoever writes it anew has time
        watched.clock.now += 1
        assert watched.opens(), second
        assert watched.status() == 401
    ((level, message),) = watched.logged
    assert level == "error"
    assert message.endswith("; its tokens stay valid for 59 s, then they are refused")
    for _ in range(3):
        watched.clock.now += 1
        assert not watched.opens()
        assert watched.status() == 503
    assert [level for level, _ in watched.logged] == ["error", "error"]
    assert watched.logged[1][1].endswith("; its tokens are refused until it is valid again")
    for _, message in watched.logged:
        assert re.match(f"--token-file: {words}", message), message
    watched.write(TOKEN)
    watched.clock.now += 1
    assert watched.opens()
    assert watched.status() == 401
    assert watched.logged[2:] == [("warning", f"--token-file: {watched.path} is valid again")]


def test_a_file_that_is_written_anew_within_the_minute_counts_from_then_on(watched: Watched) -> None:
    watched.path.unlink()
    watched.clock.now += 50
    assert watched.opens()
    watched.write(OTHER)
    watched.clock.now += 1
    assert (watched.opens(), watched.opens(OTHER)) == (False, True)
    watched.path.unlink()
    watched.clock.now += 50  # a separate minute
    assert watched.opens(OTHER)


def test_a_file_that_went_while_no_one_asked_has_no_time_left(watched: Watched) -> None:
    """How long it has been wrong cannot be known; it was right when it was last looked at."""
    watched.path.unlink()
    watched.clock.now += 3600
    assert not watched.opens()
    assert [message.rpartition("; ")[2] for _, message in watched.logged] == [
        "its tokens are refused until it is valid again"
    ]


def test_what_is_wrong_is_said_again_when_it_is_something_else(watched: Watched) -> None:
    watched.path.chmod(0o604)
    watched.clock.now += 1
    assert watched.opens()
    watched.path.unlink()
    watched.clock.now += 1
    assert watched.opens()
    assert ["others may use" in message for _, message in watched.logged] == [True, False]


def test_the_same_wrong_file_is_said_once(watched: Watched) -> None:
    watched.path.chmod(0o604)
    for _ in range(30):
        watched.clock.now += 1
        watched.opens()
    assert len(watched.logged) == 1


def test_an_empty_file_is_right_and_lets_no_one_in(watched: Watched) -> None:
    watched.write()
    watched.clock.now += 1
    assert not watched.opens()
    assert watched.status() == 401
    assert watched.logged == []
