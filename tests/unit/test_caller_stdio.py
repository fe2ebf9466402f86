"""Who calls over stdio: the user of the system, or the owner of the token in the environment."""

from __future__ import annotations

import os
import pwd

import pytest

from fastrpc.errors import UsageError
from fastrpc.guard.callers.directory import TokenDirectory
from fastrpc.guard.callers.stdio import stdio_caller
from fastrpc.guard.callers.token_text import new_token
from fastrpc.guard.callers.tokens import CallerTokens
from fastrpc.storage.database import Database

pytest_plugins = ["support.guard_database"]

VARIABLE = "FASTRPC_TOKEN"


def test_without_a_token_it_is_the_user_of_the_process() -> None:
    name = pwd.getpwuid(os.geteuid()).pw_name
    caller = stdio_caller({"USER": "somebody", "LOGNAME": "else", VARIABLE: " "})
    assert (caller.principal, caller.owner, caller.caller_class) == (f"os:{name}", name, "local")
    assert (caller.token_id, caller.scopes) == ("", ())
    assert stdio_caller({}, user_class="trusted").caller_class == "trusted"


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert stdio_caller({}).principal == f"os:{os.geteuid()}"


def test_a_token_is_taken_out_of_the_environment(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    record, text = CallerTokens(database).create("ada", "operator")
    directory = TokenDirectory(database, threads=False)
    monkeypatch.setenv(VARIABLE, text)
    caller = stdio_caller(directory=directory)
    assert (caller.principal, caller.caller_class, caller.token_id) == (
        f"ada#{record.id}",
        "operator",
        record.id,
    )
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("kind", ["unknown", "revoked", "foreign", "short"])
def test_a_token_that_is_not_valid_makes_no_one_the_user(database: Database, kind: str) -> None:
    store = CallerTokens(database)
    record, text = store.create("ada", "operator")
    if kind == "revoked":
        store.revoke(record.id)
    texts = {"unknown": new_token()[1], "revoked": text, "foreign": "a-token-of-another-server", "short": "x"}
    environment = {VARIABLE: texts[kind]}
    with pytest.raises(UsageError, match=f"^{VARIABLE}: ") as caught:
        stdio_caller(environment, TokenDirectory(database, threads=False))
    assert environment == {}
    assert texts[kind] not in str(caught.value).replace("text", "").replace("expired", "")


def test_a_token_without_a_database_is_refused() -> None:
    with pytest.raises(UsageError, match="no database"):
        stdio_caller({VARIABLE: new_token()[1]})


def test_a_database_that_cannot_be_read_is_said_so(database: Database) -> None:
    now = [0.0]
    _, text = CallerTokens(database).create("ada", "operator")
    directory = TokenDirectory(database, clock=lambda: now[0], threads=False)
    directory.start()
    now[0] = 1000.0
    with pytest.raises(UsageError, match="cannot be read"):
        stdio_caller({VARIABLE: text}, directory)
