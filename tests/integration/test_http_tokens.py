"""Access tokens of an authorization server: a real server of ours, and one on loopback that issues them.

What is signed, by whom and for whom is held against RFC 9068, RFC 8725 and MCP 2025-11-25 (authorization);
where keys come from against RFC 8414 and OpenID Discovery.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from support.access_control import BOTH, INITIALIZE, STATELESS, TOKEN, Caller, GuardedServer
from support.http_server import HttpProcess
from support.raw_http import Answer
from support.token_issuer import (
    CLASSIC,
    CURVE,
    EDWARDS,
    OPENID,
    PSS,
    RESOURCE,
    RSA,
    STRANGER,
    AuthorizationServer,
    Key,
    send,
)
from support.waiting import SECONDS, eventually

QUICK = {"FETCH_SECONDS": 1.0, "ALL_FETCHES_SECONDS": 1.5, "AGAIN_SECONDS": 0.3, "AFTER_FAILURE": 0.3}
PATIENT = {"FETCH_SECONDS": 20.0, "ALL_FETCHES_SECONDS": 20.0}
"""For an issuer that answers: a busy machine may be late."""


def for_issuers(**values: float) -> dict[str, float]:
    """What to patch for constants of the modules that check the tokens of issuers, and fetch their keys."""
    checks = ("LEEWAY_SECONDS", "KEPT_SECONDS")
    return {
        f"transports.http.{'issuers' if name in checks else 'signing_keys'}.{name}": value
        for name, value in values.items()
    }


@pytest.fixture(scope="module")
def issuing() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as server:
        yield server


@pytest.fixture(scope="module")
def guarded(issuing: AuthorizationServer) -> Iterator[GuardedServer]:
    options: dict[str, Any] = {"resource": RESOURCE, "hosts": ["mcp.test"], "origins": ["https://app.test"]}
    with GuardedServer(auth_servers=[issuing.issuer], token=TOKEN, **options) as server:
        yield server


def call(server: Caller, token: str, tool: str = "count") -> Answer:
    return server.call(tool, f"Authorization: Bearer {token}")


def check_refused(answer: Answer, status: int = 401, error: str = "invalid_token") -> None:
    assert (answer.status, answer.code) == (status, -32600), answer.body
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith("Bearer ")
    assert f'error="{error}"' in challenge
    assert 'resource_metadata="https://mcp.test/.well-known/oauth-protected-resource/mcp"' in challenge, (
        challenge
    )


# --- right tokens -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [RSA, PSS, CURVE, EDWARDS], ids=lambda key: key.algorithm)
def test_a_token_of_the_named_issuer_opens(guarded: Caller, issuing: AuthorizationServer, key: Key) -> None:
    for _ in range(3):
        assert call(guarded, issuing.token(key)).status == 200
    assert issuing.asked.count(issuing.place) == 1


RIGHT: dict[str, Callable[[AuthorizationServer], str]] = {
    "several audiences": lambda at: at.token(aud=["https://else.test", RESOURCE]),
    "expired within the leeway": lambda at: at.token(exp=int(time.time()) - 10),
    "not yet valid within the leeway": lambda at: at.token(nbf=int(time.time()) + 10),
    "a time with a fraction": lambda at: at.token(exp=time.time() + 60.5),
    "no kid where one key alone fits": lambda at: EDWARDS.sign(at.claims(), kid=None),
    "typ JWT": lambda at: CURVE.sign(at.claims(), typ="JWT"),
    "no typ": lambda at: CURVE.sign(at.claims(), typ=None),
    "typ in full": lambda at: CURVE.sign(at.claims(), typ="application/AT+JWT"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_token_that_is_right_in_an_unusual_way_opens(
    guarded: Caller, issuing: AuthorizationServer, name: str
) -> None:
    answer = call(guarded, RIGHT[name](issuing))
    assert answer.status == 200, answer.body


def test_a_fixed_token_opens_besides(guarded: Caller) -> None:
    assert call(guarded, TOKEN).status == 200
    assert call(guarded, TOKEN[:-1]).status == 401


def test_a_token_that_has_expired_opens_no_more_though_its_head_is_known(
    issuing: AuthorizationServer,
) -> None:
    patch = for_issuers(LEEWAY_SECONDS=0)
    with GuardedServer(auth_servers=[issuing.issuer], resource=RESOURCE, patch=patch) as server:
        assert call(server, issuing.token()).status == 200
        life, answers = 0.8, [401]
        while answers != [200] * 3:  # the fast path has it then
            life *= 2  # a busy machine may not get through within the first
            assert life < 60
            expires = time.time() + life
            token = issuing.token(exp=expires)
            answers = [call(server, token).status for _ in range(3)]
        eventually(lambda: call(server, token).status == 401, life + 10)
        assert time.time() >= expires


# --- wrong tokens -----------------------------------------------------------------------------------------


def encoded(part: Any) -> bytes:
    data = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def with_shared_secret(at: AuthorizationServer, secret: bytes, **header: Any) -> str:
    """RFC 8725, 2.1: a public key that is taken for a shared secret."""
    head = encoded({"alg": "HS256", "typ": "at+jwt", **header})
    text = head + b"." + encoded(at.claims())
    return (text + b"." + encoded(hmac.digest(secret, text, hashlib.sha256))).decode()


def changed(token: str, **claims: Any) -> str:
    """Other claims, the same signature."""
    head, _, signature = token.split(".")
    payload = {**jwt.decode(token, options={"verify_signature": False}), **claims}
    return f"{head}.{encoded(payload).decode()}.{signature}"


def unsigned(at: AuthorizationServer, algorithm: str) -> str:
    head = encoded({"alg": algorithm, "typ": "at+jwt", "kid": "c"})
    return (head + b"." + encoded(at.claims()) + b".").decode()


def pem(key: Key) -> bytes:
    data: bytes = key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return data


WRONG: dict[str, Callable[[AuthorizationServer], str]] = {
    "expired": lambda at: at.token(exp=int(time.time()) - 60),
    "not valid yet": lambda at: at.token(nbf=int(time.time()) + 60),
    "for another audience": lambda at: at.token(aud="https://else.test/mcp"),
    "for an audience that begins alike": lambda at: at.token(aud=RESOURCE + "/more"),
    "for the issuer itself": lambda at: at.token(aud=at.issuer),
    "for other audiences": lambda at: at.token(aud=["https://else.test", 5]),
    "without audience": lambda at: at.token(aud=None),
    "without expiry": lambda at: at.token(exp=None),
    "without subject": lambda at: at.token(sub=None),
    "of nobody": lambda at: at.token(sub=""),
    "without issuer": lambda at: at.token(iss=None),
    "of another issuer": lambda at: at.token(iss="http://127.0.0.1:1"),
    "of an issuer with a slash more": lambda at: at.token(iss=at.issuer + "/"),
    "expiry as a text": lambda at: at.token(exp=str(int(time.time()) + 60)),
    "expiry without end": lambda at: at.token(exp=1e300),
    "expiry of true": lambda at: at.token(exp=True),
    "signed by a stranger": lambda at: at.token(STRANGER),
    "signed by a stranger that brings its key": lambda at: STRANGER.sign(at.claims(), jwk=STRANGER.shown),
    "signed with a key for something else": lambda at: RSA.sign(at.claims(), kid="c"),
    "an unknown key": lambda at: CURVE.sign(at.claims(), kid="unknown"),
    "no kid where several fit": lambda at: RSA.sign(at.claims(), kid=None),
    "unsigned": lambda at: unsigned(at, "none"),
    "unsigned in capitals": lambda at: unsigned(at, "NONE"),
    "unsigned, and not said": lambda at: unsigned(at, "ES256"),
    "public key as a secret": lambda at: with_shared_secret(at, pem(RSA), kid="r"),
    "modulus as a secret": lambda at: with_shared_secret(at, RSA.shown["n"].encode(), kid="r"),
    "empty secret": lambda at: with_shared_secret(at, b"", kid="c"),
    "claims changed": lambda at: changed(at.token(), sub="eve"),
    "signature cut": lambda at: at.token()[:-3],
    "an id token by its typ": lambda at: CURVE.sign(at.claims(), typ="logout+jwt"),
    "critical header": lambda at: CURVE.sign(at.claims(), crit=["exp"]),
    "no JSON": lambda at: "aaaa.bbbb.cccc",
    "claims that are a list": lambda at: jwt.api_jws.encode(b"[]", CURVE.private, "ES256"),
    "deep claims": lambda at: jwt.api_jws.encode(b"[" * 6000, CURVE.private, "ES256"),
    "encrypted": lambda at: "a.b.c.d.e",
    "no token": lambda at: "opaque",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_token_is_refused_with_the_body_unread(
    guarded: Caller, issuing: AuthorizationServer, name: str
) -> None:
    assert call(guarded, issuing.token()).status == 200
    token = WRONG[name](issuing)
    lines = (f"Authorization: Bearer {token}", *STATELESS, "Mcp-Name: count", "Content-Length: 1000000")
    answer = guarded.ask("POST", "/mcp", *lines)
    check_refused(answer)
    for part in token.split("."):
        assert len(part) < 8 or part not in answer.body.decode() + answer.headers["www-authenticate"]
    guarded_calls = guarded.count()
    assert call(guarded, token).status == 401
    assert guarded.count() == guarded_calls + 1


def test_nothing_is_fetched_from_where_a_token_says(guarded: Caller, issuing: AuthorizationServer) -> None:
    with AuthorizationServer(STRANGER) as evil:
        places = {"jku": f"{evil.origin}/keys?of=all", "x5u": f"{evil.origin}/certificate", "kid": None}
        for kid in ("c", "unknown", f"{evil.origin}/keys?of=all", "../../../../etc/passwd"):
            check_refused(call(guarded, STRANGER.sign(issuing.claims(), **{**places, "kid": kid})))
        check_refused(call(guarded, STRANGER.sign(evil.claims(), **places)))
        check_refused(call(guarded, STRANGER.sign(evil.claims(iss=evil.issuer))))
        assert evil.asked == []


def test_made_up_keys_do_not_make_us_ask_the_issuer_again_and_again(
    guarded: Caller, issuing: AuthorizationServer
) -> None:
    assert call(guarded, issuing.token()).status == 200
    before = len(issuing.asked)
    for number in range(50):
        check_refused(call(guarded, CURVE.sign(issuing.claims(), kid=f"made up {number}")))
    assert len(issuing.asked) <= before + 2


def test_a_token_without_the_scopes_is_forbidden(issuing: AuthorizationServer) -> None:
    scopes = ["tools:call", "offline_access"]
    with GuardedServer(auth_servers=[issuing.issuer], resource=RESOURCE, scopes=scopes) as server:
        for given in (None, "", "tools", "tools:call", "tools:calls offline_access", 5):
            answer = call(server, issuing.token(scope=given))
            check_refused(answer, 403, "insufficient_scope")
            assert 'scope="tools:call offline_access"' in answer.headers["www-authenticate"]
        assert call(server, issuing.token(scope="a tools:call offline_access")).status == 200
        assert call(server, issuing.token(scp=["offline_access", "tools:call"])).status == 200
        assert 'scope="tools:call' in server.ask("POST", "/mcp").headers["www-authenticate"]


# --- who a token is ---------------------------------------------------------------------------------------


def test_a_session_belongs_to_the_subject_and_not_to_the_token(
    guarded: Caller, issuing: AuthorizationServer
) -> None:
    def lines(token: str, *more: str) -> tuple[str, ...]:
        return (f"Authorization: Bearer {token}", *BOTH, *more)

    opened = guarded.ask("POST", "/mcp", *lines(issuing.token()), body=INITIALIZE)
    session = f"Mcp-Session-Id: {opened.headers['mcp-session-id']}"
    ping = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
    renewed = issuing.token(RSA, exp=int(time.time()) + 900)
    assert guarded.ask("POST", "/mcp", *lines(renewed, session), body=ping).status == 200
    for other in (issuing.token(sub="eve"), TOKEN):
        assert guarded.ask("POST", "/mcp", *lines(other, session), body=ping).status == 404


# --- metadata (RFC 9728) ----------------------------------------------------------------------------------


def test_the_challenge_leads_to_metadata_that_leads_to_the_issuer(
    guarded: Caller, issuing: AuthorizationServer
) -> None:
    challenge = guarded.ask("POST", "/mcp").headers["www-authenticate"]
    address = challenge.partition('resource_metadata="')[2].partition('"')[0]
    for place in (address.partition("mcp.test")[2], "/.well-known/oauth-protected-resource"):
        answer = guarded.ask("GET", place, "Origin: https://app.test", host="mcp.test")
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == "https://app.test"
        assert answer.json["resource"] == RESOURCE
        assert answer.json["authorization_servers"] == [issuing.issuer]
        assert answer.json["bearer_methods_supported"] == ["header"]
        assert guarded.ask("GET", place).headers["vary"] == answer.headers["vary"] == "Origin"
        assert guarded.ask("GET", place, host="evil.test").status == 421


def test_metadata_lies_where_the_resources_address_says(issuing: AuthorizationServer) -> None:
    resource = "https://mcp.test/team/tools/mcp"
    with GuardedServer(auth_servers=[issuing.issuer], resource=resource) as server:
        place = "/.well-known/oauth-protected-resource/team/tools/mcp"
        assert f'"https://mcp.test{place}"' in server.ask("POST", "/mcp").headers["www-authenticate"]
        assert server.ask("GET", place).json["resource"] == resource


def test_who_looks_for_the_issuer_here_learns_where_it_is(issuing: AuthorizationServer) -> None:
    """Clients of 2025-03-26 take the server itself for the one that issues tokens."""
    with GuardedServer(auth_servers=[issuing.issuer], resource=RESOURCE) as server:
        for method, path in (("POST", "/register"), ("GET", "/authorize"), ("GET", CLASSIC), ("GET", OPENID)):
            answer = server.ask(method, path)
            assert answer.status == 404
            assert issuing.issuer in answer.json["error"]["message"]
        answer = server.ask("POST", "/mcp", body=b"{}")
        assert answer.status == 401
        assert f"an access token of {issuing.issuer}" in answer.json["error"]["message"]
        assert "error=" not in answer.headers["www-authenticate"]


def test_without_an_authorization_server_there_is_no_metadata() -> None:
    with GuardedServer(token=TOKEN) as server:
        assert "resource_metadata" not in server.ask("POST", "/mcp").headers["www-authenticate"]
        assert server.ask("GET", "/.well-known/oauth-protected-resource").status == 404


# --- where keys come from ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "document"), [("", CLASSIC), ("", OPENID), ("/tenant/a", CLASSIC), ("/tenant/a", OPENID)]
)
def test_keys_are_found_wherever_a_standard_puts_the_metadata(path: str, document: str) -> None:
    with (
        AuthorizationServer(path=path, document=document) as at,
        GuardedServer(auth_servers=[at.issuer], resource=RESOURCE) as server,
    ):
        assert call(server, at.token()).status == 200


def test_keys_may_change() -> None:
    patch = for_issuers(**{**QUICK, **PATIENT}, KEPT_SECONDS=0.0, KEYS_SECONDS=0.3)
    following = Key("next", "ES256")
    with (
        AuthorizationServer(CURVE) as at,
        GuardedServer(auth_servers=[at.issuer], resource=RESOURCE, patch=patch) as server,
    ):
        assert call(server, at.token()).status == 200
        at.keys = [CURVE.shown, following.shown]
        eventually(lambda: call(server, at.token(following)).status == 200)
        assert call(server, at.token()).status == 200
        at.keys = [following.shown]
        eventually(lambda: call(server, at.token()).status == 401)
        assert call(server, at.token(following)).status == 200


# --- an authorization server that fails -------------------------------------------------------------------


def hang(at: AuthorizationServer) -> Callable[[Any], object]:
    return lambda handler: at.released.wait(30)


def drip(at: AuthorizationServer) -> Callable[[Any], object]:
    def answer(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
        try:
            while not at.released.wait(0.05):
                handler.wfile.write(b" ")
        except OSError:
            pass

    return answer


FAILURES: dict[str, Callable[[AuthorizationServer], Callable[[Any], object]]] = {
    "an error": lambda at: lambda handler: send(handler, b"no", status=500),
    "no JSON": lambda at: lambda handler: send(handler, b"<html>"),
    "a list": lambda at: lambda handler: send(handler, b"[]"),
    "deep JSON": lambda at: lambda handler: send(handler, b"[" * 100_000),
    "too much": lambda at: (
        lambda handler: send(
            handler, json.dumps({**at.metadata, "keys": at.keys, "x": "x" * 5_000_000}).encode()
        )
    ),
    "another place": lambda at: lambda handler: send(handler, b"", 302, Location=f"{at.origin}/elsewhere"),
    "nothing": hang,
    "a byte now and then": drip,
    "another issuer's": lambda at: (
        lambda handler: send(handler, json.dumps({**at.metadata, "issuer": "https://else.test"}).encode())
    ),
    "keys in a file": lambda at: (
        lambda handler: send(handler, json.dumps({**at.metadata, "jwks_uri": "file:///etc/passwd"}).encode())
    ),
    "keys neither by https nor on loopback": lambda at: (
        lambda handler: send(handler, json.dumps({**at.metadata, "jwks_uri": at.everywhere}).encode())
    ),
}


FAILING = [(name, what) for name in FAILURES for what in ("metadata", "keys")]


@pytest.fixture(scope="module")
def failing() -> Iterator[tuple[GuardedServer, list[AuthorizationServer]]]:
    """One server, and an issuer for each way to fail."""
    patch = for_issuers(**{**QUICK, "AFTER_FAILURE": 0.1})
    with contextlib.ExitStack() as stack:
        issuers = [stack.enter_context(AuthorizationServer()) for _ in FAILING]
        options: dict[str, Any] = {"resource": RESOURCE, "token": TOKEN, "patch": patch}
        server = GuardedServer(auth_servers=[at.issuer for at in issuers], **options)
        yield stack.enter_context(server), issuers


@pytest.mark.parametrize("number", range(len(FAILING)), ids=[f"{name}-{what}" for name, what in FAILING])
def test_an_issuer_that_answers_badly_lets_no_one_in_and_holds_nothing_up(
    failing: tuple[GuardedServer, list[AuthorizationServer]], number: int
) -> None:
    server, at, (name, what) = failing[0], failing[1][number], FAILING[number]
    place = at.place if what == "metadata" else "/keys?of=all"
    good, at.answers[place] = at.answers[place], FAILURES[name](at)
    at.answers["/elsewhere"] = good
    answers: list[Answer] = []
    waiting = [threading.Thread(target=lambda: answers.append(call(server, at.token()))) for _ in range(3)]
    for thread in waiting:
        thread.start()
    assert call(server, TOKEN).status == 200  # a caller whom the issuer has nothing to do with
    if name == "nothing":
        assert not answers  # which did not wait for the issuer's time to be up
    for thread in waiting:
        thread.join(SECONDS)
    assert [(each.status, each.code) for each in answers] == [(503, -32603)] * 3
    assert all("retry-after" in each.headers for each in answers)
    at.answers[place] = good
    eventually(lambda: call(server, at.token()).status == 200)


def test_an_issuer_that_is_not_there_is_said_once_for_each_attempt() -> None:
    with AuthorizationServer() as at:
        issuer, token = at.issuer, at.token()
    with GuardedServer(auth_servers=[issuer], resource=RESOURCE) as server:
        for _ in range(5):
            assert call(server, token).status == 503
        assert call(server, "nonsense").status == 401
        server.stop()
    said = server.stderr
    assert said.count("keys cannot be fetched") == 1
    assert issuer in said
    assert not [part for part in token.split(".") if part in said]


def test_known_keys_are_good_while_their_issuer_is_down_but_not_for_ever() -> None:
    times = {"KEPT_SECONDS": 0.0, "KEYS_SECONDS": 0.1, "LONGEST_KEYS_SECONDS": 2.5}
    patch = for_issuers(**{**QUICK, **PATIENT}, **times)
    with (
        AuthorizationServer() as at,
        GuardedServer(auth_servers=[at.issuer], resource=RESOURCE, patch=patch) as server,
    ):
        began = time.monotonic()
        assert call(server, at.token()).status == 200
        at.answers[at.place] = lambda handler: send(handler, b"", status=503)
        for _ in range(6):
            time.sleep(0.15)  # the keys are old now
            status = call(server, at.token()).status
            assert status == 200 or time.monotonic() - began > times["LONGEST_KEYS_SECONDS"]
        eventually(lambda: call(server, at.token()).status == 503)


# --- from the command line ---------------------------------------------------------------------------------


def test_the_command_line_names_the_issuer_and_what_its_tokens_need(
    issuing: AuthorizationServer, tmp_path: Any
) -> None:
    """The address at which it serves is what tokens have to be for, unless something else is said."""
    path = tmp_path / "counting.py"
    path.write_text("from fastrpc import tool\n\n@tool\ndef count() -> str:\n    return '1'\n")
    arguments = ["serve", str(path), "--http", "127.0.0.1:0"]
    arguments += ["--auth-server", issuing.issuer, "--scope", "a", "--scope", "b"]
    with HttpProcess(*arguments) as server:
        address, caller = server.place, Caller(server.port)
        assert address.endswith("/mcp")
        assert call(caller, issuing.token(aud=address, scope="b a c")).text == "1"
        assert call(caller, issuing.token(aud=address, scope="a")).status == 403
        assert call(caller, issuing.token(scope="a b")).status == 401
        metadata = caller.ask("GET", "/.well-known/oauth-protected-resource/mcp").json
        assert (metadata["resource"], metadata["scopes_supported"]) == (address, ["a", "b"])
        server.stop()
        assert server.stderr == f"fastrpc: serving at {address}\n"


# --- what is no authorization server ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["http://auth.test", "ftp://auth.test", "https://", "https://a.test/?q", "https://a.test#f"]
)
def test_an_issuer_must_be_reached_by_https_or_be_on_this_machine(address: str) -> None:
    with pytest.raises(AssertionError, match="--auth-server: expected an https address"):
        GuardedServer(auth_servers=[address], resource=RESOURCE)
