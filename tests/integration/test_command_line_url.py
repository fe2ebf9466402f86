"""`fastrpc list`, `call`, `inspect` at the URL of a server that wants a token, and before a proxy."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.command_line import WORDS, assert_mistake, run
from support.http_server import HttpProcess

TOKEN = "a-token-of-forty-characters-for-the-tests"


@pytest.fixture
def url(place: Any, words: str) -> Iterator[str]:
    """The URL of the tools in `words`, for whoever has the token in the file ``token``."""
    (place / "token").write_text(TOKEN + "\n")
    (place / "token").chmod(0o600)
    options = ("--http", "127.0.0.1:0", "--token-file", "token")
    with HttpProcess("serve", words, *options, folder=place) as server:
        yield f"http://127.0.0.1:{server.port}/mcp"


def test_a_url_is_listed_called_and_inspected_with_a_token_from_a_file(place: Any, url: str) -> None:
    listed = run(place, "list", url, "--json", "--token-file", "token")
    assert [tool["name"] for tool in json.loads(listed.stdout)["tools"]] == ["word_count", "fail", "where"]
    called = run(place, "call", url, "word_count", "text=one two three", "--token-file", "token")
    assert (called.returncode, called.stdout, called.stderr) == (0, "3\n", "")
    shown = run(place, "inspect", url, "--token-file", "token", "--protocol", "2025-06-18")
    assert shown.returncode == 0, shown.stderr
    assert "protocol: 2025-06-18\n" in shown.stdout


@pytest.mark.parametrize("header", [f"Authorization: Bearer {TOKEN}", "Authorization=OURS"])
def test_a_header_is_sent_as_it_is_or_from_the_environment(place: Any, url: str, header: str) -> None:
    done = run(place, "call", url, "word_count", "text=a b", "--header", header, OURS=f"Bearer {TOKEN}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


def test_a_header_goes_before_that_of_a_file_with_servers(place: Any, url: str) -> None:
    entry = {"url": url, "headers": {"authorization": "Bearer of-another-server", "X-Kept": "1"}}
    (place / ".mcp.json").write_text(json.dumps({"mcpServers": {"far": entry}}))
    refused = run(place, "call", "far", "word_count", "text=a b")
    assert refused.returncode == 1
    done = run(place, "call", "far", "word_count", "text=a b", "--header", f"Authorization: Bearer {TOKEN}")
    assert (done.returncode, done.stdout) == (0, "2\n")


def test_a_refused_token_is_one_line_that_does_not_show_it(place: Any, url: str) -> None:
    wrong = "wrong-token-of-the-tests-that-nobody-may-see"
    done = run(place, "list", url, "--header", f"Authorization: Bearer {wrong}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "401" in done.stderr
    assert wrong not in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--header", "secret-value-alone"], "--header: expected 'Name: value' or NAME=VARIABLE"),
        (["--header", "X-Key=NO_SUCH_VARIABLE"], "there is no environment variable 'NO_SUCH_VARIABLE'"),
        (["--header", "X-Key:"], "--header X-Key: expected a name and a value"),
        (["--header", "X-Key: secret-value-a", "--header", "x-key: secret-value-b"], "it is given twice"),
        (["--header", "X-Key: secret\nvalue"], "X-Key"),
        (["--token-file", "none"], "--token-file none: No such file"),
    ],
)
def test_headers_and_tokens_that_are_none_are_mistakes_without_their_values(
    place: Any, options: list[str], said: str
) -> None:
    done = run(place, "list", "http://127.0.0.1:9/mcp", *options)
    assert_mistake(done, said)
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--header", "X-Key: secret"], "--header: requires a URL, got words.py"),
        (["--token-file", "words.py"], "--token-file: requires a URL, got words.py"),
    ],
)
def test_a_server_that_is_started_takes_neither(
    place: Any, words: str, options: list[str], said: str
) -> None:
    assert_mistake(run(place, "list", "words.py", *options), said)


def test_what_a_proxy_offers_is_listed_called_and_inspected(place: Any) -> None:
    (place / "behind.py").write_text(WORDS)
    command = [sys.executable, "-m", "fastrpc", "serve", "behind.py"]
    (place / "front.py").write_text(f"from fastrpc import Server\n\napp = Server.proxy({command!r})\n")
    listed = run(place, "list", "front.py")
    assert "word_count" in listed.stdout, listed.stderr
    called = run(place, "call", "front.py", "word_count", "text=a b c d")
    assert (called.returncode, called.stdout) == (0, "4\n"), called.stderr
    failed = run(place, "call", "front.py", "fail", "reason=that is why")
    assert failed.returncode == 1
    assert "that is why" in failed.stdout + failed.stderr
    shown = json.loads(run(place, "inspect", "front.py", "--json").stdout)
    assert [tool["name"] for tool in shown["tools"]] == ["word_count", "fail", "where"]
