"""``fastrpc token``: what it prints where, what it takes, and the mistakes that it names."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from fastrpc.cli import _guard_database
from fastrpc.cli.approvals import main as approvals
from fastrpc.cli.token import main
from fastrpc.errors import UsageError
from fastrpc.guard.callers.directory import TokenDirectory
from fastrpc.storage import sqlite
from fastrpc.storage.database import Database

TOKEN = re.compile(r"frpc_[a-z2-7]{12}_[A-Za-z0-9_-]{43}\n")


class Command:
    """The command on a separate database."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[str, str]:
        """Run it, and return what it has written to standard output and error."""
        self._capsys.readouterr()
        assert main([*arguments, "--database", self.url]) == 0
        said = self._capsys.readouterr()
        return said.out, said.err

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json")[0])

    def opens(self, token: str) -> bool:
        database = Database(self.url)
        found = TokenDirectory(database, threads=False).verify(token.strip().encode())
        database.close()
        return found is not None


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("FASTRPC_GUARD_DATABASE", raising=False)
    return Command(f"sqlite:///{tmp_path}/other/guard.sqlite3", capsys)


def test_a_token_is_the_only_line_on_standard_output(token: Command) -> None:
    out, err = token("create", "--owner", "ada")
    assert TOKEN.fullmatch(out)
    assert token.opens(out)
    assert re.fullmatch(r"fastrpc: token [a-z2-7]{12} of ada; copy it now: it cannot be shown again\n", err)
    assert out.strip() not in "".join(token("list") + token("list", "--json"))


def test_what_was_asked_for_is_in_the_list(token: Command) -> None:
    options = ("--owner", "ada", "--class", "operator", "--scope", "a", "--scope", "b:c", "--expires", "30d")
    made = token.json("create", *options)
    text = made.pop("token")
    assert token.opens(text)
    (found,) = token.json("list")
    assert found == made
    assert (found["owner"], found["class"], found["scopes"]) == ("ada", "operator", ["a", "b:c"])
    assert (found["status"], found["principal"]) == ("live", f"ada#{found['id']}")
    table = token("list")[0]
    assert all(word in table for word in (found["id"], "ada", "operator", "live", "a b:c"))


@pytest.mark.parametrize(
    ("when", "least", "most"),
    [("90s", 90, 90), ("15m", 900, 900), ("12h", 43200, 43200), ("2w", 1209600, 1209600)],
)
def test_a_token_expires_when_it_was_asked_for(token: Command, when: str, least: int, most: int) -> None:
    before = int(time.time())
    made = token.json("create", "--owner", "ada", "--expires", when)
    at = _seconds(made["expires_at"])
    assert before + least <= at <= time.time() + most


def test_a_date_is_the_last_day(token: Command) -> None:
    assert token.json("create", "--owner", "ada", "--expires", "2999-12-31")["expires_at"] == (
        "3000-01-01T00:00:00Z"
    )


def test_a_rotated_token_replaces_the_former_one(token: Command) -> None:
    former = token.json("create", "--owner", "ada")
    out, _ = token("rotate", former["id"])
    assert TOKEN.fullmatch(out)
    assert token.opens(out)
    assert not token.opens(former["token"])


def test_with_an_overlap_both_open(token: Command) -> None:
    former = token.json("create", "--owner", "ada")
    made = token.json("rotate", former["id"], "--overlap", "1h")
    assert made["rotated_from"] == former["id"]
    assert token.opens(made["token"])
    assert token.opens(former["token"])


def test_a_revoked_token_opens_nothing(token: Command) -> None:
    made = token.json("create", "--owner", "ada")
    out, err = token("revoke", made["id"])
    assert (out, err) == ("", f"fastrpc: token {made['id']} of ada is revoked\n")
    assert not token.opens(made["token"])
    assert token.json("revoke", made["id"])["status"] == "revoked"


def test_without_an_option_it_is_the_database_of_the_setting(
    token: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list"]) == 0
    assert (tmp_path / "state" / "guard.sqlite3").is_file()
    monkeypatch.setenv("FASTRPC_GUARD_DATABASE", f"sqlite:///{tmp_path}/named.sqlite3")
    assert main(["list"]) == 0
    assert (tmp_path / "named.sqlite3").is_file()


def test_a_file_in_the_working_directory_does_not_choose_the_database(
    token: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may have come with a cloned repository."""
    (tmp_path / "work" / ".scorpiox").mkdir(parents=True)
    (tmp_path / "work" / ".scorpiox" / "scorpiox-env.txt").write_text(
        f"FASTRPC_GUARD_DATABASE=sqlite:///{tmp_path}/theirs.sqlite3\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "work")
        assert main(["list"]) == 0
    assert not (tmp_path / "theirs.sqlite3").exists()
    assert "FASTRPC_GUARD_DATABASE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: ACTION"),
        (["creat"], "did you mean 'create'?"),
        (["create"], "--owner NAME is needed"),
        (["create", "x", "--owner", "a"], "one argument too many"),
        (["create", "--owner", "a:b"], "owner: expected"),
        (["create", "--owner", "a", "--class", "a b"], "class: expected"),
        (["create", "--owner", "a", "--scope", "a b"], "scope: expected"),
        (["create", "--owner", "a", "--expires", "soon"], "--expires: expected a time such as 30d"),
        (["create", "--owner", "a", "--expires", "0s"], "--expires: 0s is over"),
        (["create", "--owner", "a", "--expires", "2020-01-01"], "--expires: 2020-01-01 is over"),
        (["create", "--owner", "a", "--overlap", "1h"], "--overlap is not an option of it"),
        (["list", "--owner", "a"], "--owner is not an option of it"),
        (["list", "abc"], "one argument too many"),
        (["rotate"], "name the token by its id"),
        (["rotate", "abc"], "there is no token 'abc'"),
        (["rotate", "abc", "--overlap", "-1h"], "--overlap"),
        (["rotate", "abc", "--overlap", "long"], "--overlap: expected a time"),
        (["revoke"], "name the token by its id"),
        (["revoke", "abc"], "there is no token 'abc'"),
        (["list", "--database", "mysql://x:geheim@y/z"], "expected sqlite:///PATH or postgresql:"),
    ],
)
def test_a_mistake_is_one_sentence(token: Command, arguments: list[str], words: str) -> None:
    if "--database" not in arguments:
        arguments = [*arguments, "--database", token.url]
    with pytest.raises(UsageError) as caught:
        main(arguments)
    assert words in str(caught.value)
    assert "geheim" not in str(caught.value)
    if Path(token.url.removeprefix("sqlite:///")).exists():
        assert token.json("list") == []


def test_a_database_that_is_damaged_is_a_mistake_too(token: Command, tmp_path: Path) -> None:
    path = tmp_path / "damaged.sqlite3"
    path.write_bytes(b"x" * 5000)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="not changed"):
        main(["list", "--database", f"sqlite:///{path}"])
    assert path.read_bytes() == b"x" * 5000


def _seconds(moment: str) -> float:
    from datetime import datetime, timezone

    return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()


def test_a_database_that_others_lock_is_waited_for_aloud_and_given_up(
    token: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token("create", "--owner", "ada")
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.5)
    monkeypatch.setattr(_guard_database, "SLOW_SECONDS", 0.1)
    other = sqlite.connect(token.url.removeprefix("sqlite:///"))
    other.execute("BEGIN IMMEDIATE")
    try:
        for command in (main, approvals):
            action = ("create", "--owner", "bob") if command is main else ("reject", "ap_none")
            with pytest.raises(UsageError, match="database is locked"):
                command([*action, "--database", token.url])
            waited = "fastrpc: waiting for the guard's database: others use it, or it does not answer\n"
            assert capsys.readouterr().err == waited
    finally:
        other.close()
