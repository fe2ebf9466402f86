"""Token verifiers of compat servers: which tokens they accept, and what they refuse.

Results and the members of access tokens are those that FastMCP 3 and 4 give, except where docs/compat.md says
that they differ. Attacks on JWTs are those of RFC 8725.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from jwt.algorithms import ECAlgorithm, OKPAlgorithm
from support.compat_auth import AUDIENCE, ISSUER, PAIR, Own, run, statuses, token, verifier, verify
from support.web_server import Visit, serve

from fastrpc.compat.auth.access import AccessToken as AnyToken
from fastrpc.compat.fastmcp import (
    AccessToken,
    DebugTokenVerifier,
    FastMCP,
    IntrospectionTokenVerifier,
    JWTVerifier,
    MultiAuth,
    RSAKeyPair,
    StaticTokenVerifier,
)
from fastrpc.errors import UsageError

# --- access tokens ----------------------------------------------------------------------------------------


def test_an_access_token_does_not_show_its_token() -> None:
    access = AccessToken(token="s3cret-token", client_id="ada", scopes=["read"])
    assert "s3cret" not in repr(access) + str(access)
    assert access.model_dump() == {
        "token": "s3cret-token",
        "client_id": "ada",
        "scopes": ["read"],
        "expires_at": None,
        "resource": None,
        "subject": None,
        "claims": {},
    }
    assert access.model_copy() == access != access.model_copy(update={"scopes": []})


class OwnToken(AnyToken):
    team: str = "none"
    level: int


def test_a_subclass_has_further_members() -> None:
    access = OwnToken(token="t", client_id="c", scopes=[], level=3)
    assert (access.team, access.level, access.claims) == ("none", 3, {})


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"token": "t", "scopes": []}, "client_id is missing"),
        ({"token": "t", "client_id": "c", "scopes": [], "extra": 1}, "unexpected member 'extra'"),
        ({"token": 5, "client_id": "c", "scopes": []}, "token: expected a text, got int"),
    ],
)
def test_an_access_token_with_wrong_members_is_refused(members: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        AccessToken(**members)


def test_a_key_pair_does_not_show_its_private_key() -> None:
    assert "PRIVATE" not in f"{PAIR!r} {PAIR.private_key!r} {PAIR.private_key}"
    assert "PRIVATE KEY" in PAIR.private_key.get_secret_value()


# --- JWTs -------------------------------------------------------------------------------------------------


def test_a_signed_token_gives_its_claims() -> None:
    access = verify(verifier(), token(subject="ada", additional_claims={"azp": "shop", "team": "a"}))
    assert (access.client_id, access.subject, access.scopes) == ("shop", "ada", ["read"])
    assert access.expires_at == access.claims["exp"]
    assert (access.claims["team"], access.claims["iss"], access.resource) == ("a", ISSUER, None)


@pytest.mark.parametrize(
    ("claims", "client"),
    [({"client_id": "c", "azp": "a"}, "c"), ({"azp": "a"}, "a"), ({}, "s"), ({"sub": ""}, "unknown")],
)
def test_the_client_of_a_token_is_the_first_that_it_names(claims: dict[str, Any], client: str) -> None:
    assert verify(verifier(), token(subject="s", additional_claims=claims)).client_id == client


RIGHT: dict[str, dict[str, Any]] = {
    "several audiences": {"audience": [AUDIENCE, "other"]},
    "without an end": {"additional_claims": {"exp": None}},
    "scopes as a list": {"scopes": None, "additional_claims": {"scp": ["read"]}},
    "begins now": {"additional_claims": {"nbf": int(time.time())}},
}
WRONG: dict[str, dict[str, Any]] = {
    "expired": {"expires_in_seconds": -1},
    "not yet valid": {"additional_claims": {"nbf": int(time.time()) + 3600}},
    "for another audience": {"audience": "https://else.test"},
    "for no audience": {"audience": None},
    "of another issuer": {"issuer": "https://else.test"},
    "of no issuer": {"additional_claims": {"iss": None}},
    "of a list of issuers": {"additional_claims": {"iss": [ISSUER]}},
    "an end that is a text": {"additional_claims": {"exp": "9999999999"}},
    "an end that is true": {"additional_claims": {"exp": True}},
    "an audience in an object": {"additional_claims": {"aud": {AUDIENCE: 1}}},
    "without a scope": {"scopes": ["write"]},
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_token_is_accepted(name: str) -> None:
    assert verify(verifier(required_scopes=["read"]), token(**RIGHT[name])) is not None


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_token_is_refused(name: str) -> None:
    assert verify(verifier(required_scopes=["read"]), token(**WRONG[name])) is None


def encoded(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signed_by_hmac(secret: bytes, **header: Any) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": int(time.time()) + 600}
    text = encoded({"alg": "HS256", "typ": "JWT", **header}) + b"." + encoded(claims)
    return (text + b"." + encoded(hmac.new(secret, text, hashlib.sha256).digest())).decode()


def with_header(given: str, **header: Any) -> str:
    """A token with another header; its signature stays."""
    _, claims, signature = given.split(".")
    return f"{encoded({'alg': 'RS256', **header}).decode()}.{claims}.{signature}"


def signed(**header: Any) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": int(time.time()) + 600}
    return jwt.encode(claims, PAIR.private_key.get_secret_value(), "RS256", headers=header)


FORGED: dict[str, Callable[[], str]] = {
    "no signature": lambda: f"{encoded({'alg': 'none'}).decode()}.{token().split('.')[1]}.",
    "none in capitals": lambda: f"{encoded({'alg': 'nOnE'}).decode()}.{token().split('.')[1]}.",
    "none with a signature": lambda: with_header(token(), alg="none"),
    "the public key as a shared secret": lambda: signed_by_hmac(PAIR.public_key.encode()),
    "that, without the last newline": lambda: signed_by_hmac(PAIR.public_key.strip().encode()),
    "that, under the right name": lambda: signed_by_hmac(PAIR.public_key.encode(), alg="RS256"),
    "an empty secret": lambda: signed_by_hmac(b""),
    "another algorithm of the same key": lambda: with_header(token(), alg="RS512"),
    "an algorithm that is a list": lambda: with_header(token(), alg=["RS256"]),
    "another key": lambda: token(RSAKeyPair.generate()),
    "other claims": lambda: ".".join([*token().split(".")[:1], *token(subject="eve").split(".")[1:2], "AA"]),
    "a cut signature": lambda: token()[:-8],
    "critical members": lambda: signed(crit=["exp"], exp=1),
    "a payload outside": lambda: signed(b64=False, crit=["b64"]),
    "an array of claims": lambda: jwt.api_jws.encode(b"[]", PAIR.private_key.get_secret_value(), "RS256"),
    "deep claims": lambda: f"{encoded({'alg': 'RS256'}).decode()}.{encoded(b'[' * 100_000).decode()}.AA",
    "not a JWT": lambda: "opaque",
    "dots": lambda: "...",
    "empty": lambda: "",
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_is_refused(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert verify(verifier(), FORGED[name]()) is None


EMBEDDED = jwt.algorithms.RSAAlgorithm.to_jwk(
    jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).prepare_key(PAIR.public_key), as_dict=True
)


@pytest.mark.parametrize("name", ["jwk", "jku", "x5u"])
def test_a_key_that_the_token_brings_along_is_not_used(name: str) -> None:
    stranger = RSAKeyPair.generate()
    with serve() as web:
        web.add("/keys", json.dumps({"keys": [{**EMBEDDED, "kid": "k"}]}).encode(), "application/json")
        value = EMBEDDED if name == "jwk" else web.url("/keys")
        given = jwt.encode(
            {"iss": ISSUER, "aud": AUDIENCE}, PAIR.private_key.get_secret_value(), "RS256", {name: value}
        )
        assert verify(verifier(public_key=stranger.public_key), given) is None
        assert web.requests == []


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_shared_secret_verifies(algorithm: str) -> None:
    secret = "0123456789abcdef" * 4
    by = JWTVerifier(public_key=secret, algorithm=algorithm)
    assert verify(by, jwt.encode({"sub": "ada"}, secret, algorithm)).client_id == "ada"
    assert verify(by, jwt.encode({"sub": "ada"}, secret[::-1], algorithm)) is None
    assert verify(by, token()) is None
    assert secret not in repr(by)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "public_key or jwks_uri"),
        ({"public_key": "x", "jwks_uri": "https://x.test/keys"}, "public_key or jwks_uri"),
        ({"public_key": "x", "algorithm": "none"}, "algorithm: expected one of"),
        ({"public_key": PAIR.public_key, "algorithm": "HS256"}, "not a key in PEM"),
        ({"jwks_uri": "https://x.test/keys", "algorithm": "HS256"}, "not a jwks_uri"),
        ({"public_key": "x", "jwks_refresh_interval": -1.0}, "jwks_refresh_interval"),
        ({"jwks_uri": "https://x.test/keys", "ssrf_safe": True}, "ssrf_safe is not offered"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        JWTVerifier(**options)


def test_a_key_that_cannot_be_used_is_found_before_the_server_starts() -> None:
    app = FastMCP("shop", auth=JWTVerifier(public_key="no key"))
    with pytest.raises(UsageError, match="public_key cannot be used with RS256") as failure:
        app._token_check()
    assert "no key" not in str(failure.value)


# --- keys at an address -----------------------------------------------------------------------------------


class Keys:
    """A JWKS address on loopback, whose keys can change."""

    def __init__(self, web: Any, *kids: str) -> None:
        self.pairs = {kid: ec.generate_private_key(ec.SECP256R1()) for kid in kids}
        self.shown = [
            {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid}
            for kid, key in self.pairs.items()
        ]
        self.url = web.url("/keys")
        self.web = web
        web.answer("/keys", self._show)

    def _show(self, visit: Visit) -> None:
        visit.respond(json.dumps({"keys": self.shown}), "application/json")

    def sign(self, kid: Any, key: Any = None, **claims: Any) -> str:
        headers = {} if kid is None else {"kid": kid}
        text = encoded({"alg": "ES256", "typ": "JWT", **headers}) + b"."
        text += encoded({"sub": "ada", "exp": int(time.time()) + 60, **claims})
        algorithm = ECAlgorithm(ECAlgorithm.SHA256)
        return (text + b"." + encoded(algorithm.sign(text, key or self.pairs[kid]))).decode()


def test_keys_are_fetched_once_and_for_a_new_key_again() -> None:
    with serve() as web:
        keys = Keys(web, "a", "b")
        by = JWTVerifier(jwks_uri=keys.url, algorithm="ES256", jwks_refresh_interval=0.0)
        late, keys.shown = keys.shown[1:], keys.shown[:1]

        async def work() -> list[bool]:
            found = [await by.verify_token(keys.sign("a")) for _ in range(3)]
            assert web.count("/keys") == 1
            found.append(await by.verify_token(keys.sign("b")))
            keys.shown = keys.shown + late
            found.append(await by.verify_token(keys.sign("b")))
            return [each is not None for each in found]

        assert run(work()) == [True, True, True, False, True]


def test_forged_key_ids_cause_no_request_each() -> None:
    with serve() as web:
        keys = Keys(web, "a")
        by = JWTVerifier(jwks_uri=keys.url, algorithm="ES256")

        async def work() -> int:
            for number in range(20):
                assert await by.verify_token(keys.sign(f"forged-{number}", keys.pairs["a"])) is None
            assert await by.verify_token(keys.sign("a")) is not None
            return web.count("/keys")

        assert run(work()) == 1


@pytest.mark.parametrize(
    "kid",
    ["../../keys", "/etc/passwd", "a\0", "http://127.0.0.1:1/", "a' OR 1=1", "", {"a": 1}, ["a"], 5],
    ids=repr,
)
def test_a_key_id_is_only_compared(kid: Any) -> None:
    with serve() as web:
        keys = Keys(web, "a", "b")
        by = JWTVerifier(jwks_uri=keys.url, algorithm="ES256")
        assert verify(by, keys.sign(kid, keys.pairs["a"])) is None
        assert {path for _, path in web.requests} <= {"/keys"}


def test_a_token_without_a_key_id_needs_a_single_key() -> None:
    with serve() as web:
        keys = Keys(web, "a")
        by = JWTVerifier(jwks_uri=keys.url, algorithm="ES256")
        assert verify(by, keys.sign(None, keys.pairs["a"])) is not None
        keys = Keys(web, "a", "b")
        by = JWTVerifier(jwks_uri=keys.url, algorithm="ES256")
        assert verify(by, keys.sign(None, keys.pairs["a"])) is None


def test_a_key_of_the_set_that_is_a_shared_secret_is_not_used() -> None:
    with serve() as web:
        keys = Keys(web, "a")
        keys.shown.append({"kty": "oct", "kid": "s", "k": encoded(b"secret" * 8).decode()})
        by = JWTVerifier(jwks_uri=keys.url, algorithm="ES256")
        assert verify(by, jwt.encode({"sub": "eve"}, b"secret" * 8, "HS256", {"kid": "s"})) is None
        assert verify(by, keys.sign("s", keys.pairs["a"])) is None
        assert verify(by, keys.sign("a")) is not None


@pytest.mark.parametrize("algorithm", ["EdDSA", "Ed25519"])
def test_an_edwards_key_verifies_by_either_name(algorithm: str) -> None:
    private = ed25519.Ed25519PrivateKey.generate()
    shown = {**OKPAlgorithm.to_jwk(private.public_key(), as_dict=True), "kid": "e"}
    text = encoded({"alg": algorithm, "kid": "e"}) + b"." + encoded({"sub": "ada"})
    given = (text + b"." + encoded(private.sign(text))).decode()
    with serve() as web:
        web.add("/keys", json.dumps({"keys": [shown]}).encode(), "application/json")
        assert verify(JWTVerifier(jwks_uri=web.url("/keys"), algorithm=algorithm), given) is not None
        other = "Ed25519" if algorithm == "EdDSA" else "EdDSA"
        assert verify(JWTVerifier(jwks_uri=web.url("/keys"), algorithm=other), given) is None


BROKEN: dict[str, Callable[[Visit], object]] = {
    "absent": lambda visit: visit.respond("", status=404),
    "not JSON": lambda visit: visit.respond("<html>"),
    "a list": lambda visit: visit.respond("[]"),
    "without keys": lambda visit: visit.respond("{}"),
    "too long": lambda visit: visit.respond(json.dumps({"keys": [{"x": "a" * 300_000}]})),
    "a redirect": lambda visit: visit.respond("", status=302, location="/good"),
    "compressed": lambda visit: visit.respond(b"\x1f\x8b", content_encoding="gzip"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_without_usable_keys_requests_are_refused_for_now(name: str) -> None:
    with serve() as web:
        keys = Keys(web, "a")
        web.answer("/good", keys._show)
        web.answer("/keys", BROKEN[name])
        by = JWTVerifier(jwks_uri=keys.url, algorithm="ES256")
        assert statuses(FastMCP("shop", auth=by), keys.sign("a")) == [503]
        assert verify(by, keys.sign("a")) is None
        assert web.count("/good") == 0


# --- other verifiers --------------------------------------------------------------------------------------


def test_static_tokens_have_their_claims() -> None:
    tokens = {
        "right": {"client_id": "ada", "scopes": ["read"], "sub": "a", "team": "x"},
        "old": {"client_id": "bob", "scopes": ["read"], "expires_at": 5},
    }
    by = StaticTokenVerifier(tokens)
    access = verify(by, "right")
    assert (access.client_id, access.subject, access.claims["team"]) == ("ada", "a", "x")
    assert [verify(by, each) for each in ("old", "wrong", "", "righ", "right ")] == [None] * 5
    assert verify(StaticTokenVerifier(tokens, required_scopes=["admin"]), "right") is None
    assert "right" not in repr(by)


def test_a_debug_verifier_does_what_its_function_says() -> None:
    async def later(given: str) -> bool:
        await asyncio.sleep(0)
        return given == "b"

    def broken(given: str) -> bool:
        raise KeyError(given)

    assert verify(DebugTokenVerifier(), "anything").client_id == "debug-client"
    assert verify(DebugTokenVerifier(), " ") is None
    assert verify(DebugTokenVerifier(lambda given: given == "a", scopes=["s"]), "a").scopes == ["s"]
    assert verify(DebugTokenVerifier(later), "b") is not None
    assert verify(DebugTokenVerifier(later), "a") is None
    assert verify(DebugTokenVerifier(broken), "a") is None


def test_a_verifier_of_ones_own_decides(caplog: pytest.LogCaptureFixture) -> None:
    app = FastMCP("shop", auth=Own(required_scopes=["admin"]))
    given = (None, "admin", "good", "old", "bad", "broken", "odd")
    assert statuses(app, *given) == [401, 200, 403, 401, 401, 500, 500]
    said = caplog.text
    assert "Own.verify_token raised KeyError" in said
    assert "'broken'" not in said


def test_several_verifiers_are_asked_one_after_the_other() -> None:
    static = StaticTokenVerifier({"static": {"client_id": "s", "scopes": []}})
    app = FastMCP("shop", auth=MultiAuth(verifiers=[verifier(required_scopes=["read"]), Own(), static]))
    assert statuses(app, token(), "good", "static", "bad", "broken") == [200, 200, 200, 401, 401]
    assert statuses(app, token(scopes=[]), token(expires_in_seconds=-5)) == [403, 401]
    with pytest.raises(ValueError, match="a server or a verifier"):
        MultiAuth()


class Introspection:
    """An introspection endpoint on loopback."""

    def __init__(self, web: Any) -> None:
        self.answers: dict[str, Any] = {"good": {"active": True, "client_id": "c", "scope": "read write"}}
        self.forms: list[tuple[dict[str, str], str | None]] = []
        self.url = web.url("/introspect?realm=s3cret-query")
        web.answer("/introspect", self._answer)

    def _answer(self, visit: Visit) -> None:
        from urllib.parse import parse_qsl

        form = dict(parse_qsl(visit.rfile.read(int(visit.headers["content-length"])).decode()))
        self.forms.append((form, visit.headers["authorization"]))
        found = self.answers.get(form["token"], {"active": False})
        visit.respond(found if isinstance(found, (str, bytes)) else json.dumps(found), "application/json")

    def verifier(self, **options: Any) -> IntrospectionTokenVerifier:
        return IntrospectionTokenVerifier(
            introspection_url=self.url, client_id="me", client_secret="s3cret-of-mine", **options
        )


def test_introspection_tells_who_a_token_is_for() -> None:
    with serve() as web:
        at = Introspection(web)
        at.answers["old"] = {"active": True, "exp": 5}
        at.answers["listed"] = {"active": True, "sub": "ada", "scope": ["read"], "exp": time.time() + 60}
        at.answers["yes"] = {"active": "true"}
        by = at.verifier(required_scopes=["read"])
        access = verify(by, "good")
        assert (access.client_id, access.scopes, access.claims["active"]) == ("c", ["read", "write"], True)
        assert (verify(by, "listed").client_id, verify(by, "listed").scopes) == ("ada", ["read"])
        assert [verify(by, each) for each in ("old", "unknown", "yes")] == [None] * 3
        assert verify(at.verifier(required_scopes=["admin"]), "good") is None
        form, header = at.forms[0]
        assert form == {"token": "good", "token_type_hint": "access_token"}
        assert header == "Basic " + base64.b64encode(b"me:s3cret-of-mine").decode()
        verify(at.verifier(client_auth_method="client_secret_post"), "good")
        form, header = at.forms[-1]
        assert (form["client_id"], form["client_secret"], header) == ("me", "s3cret-of-mine", None)
        assert "s3cret" not in repr(by)


def test_introspection_is_asked_each_time_unless_it_may_keep() -> None:
    with serve() as web:
        at = Introspection(web)

        async def work(by: Any) -> int:
            before = len(at.forms)
            for _ in range(3):
                assert await by.verify_token("good") is not None
            return len(at.forms) - before

        assert run(work(at.verifier())) == 3
        assert run(work(at.verifier(cache_ttl_seconds=60))) == 1
        at.answers["good"]["exp"] = time.time() - 5
        assert verify(at.verifier(cache_ttl_seconds=60), "good") is None


@pytest.mark.parametrize("answer", ["<html>", "[]", '{"active": true, "x": "' + "a" * 300_000 + '"}'])
def test_an_endpoint_that_answers_nonsense_refuses_for_now(
    answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serve() as web:
        at = Introspection(web)
        at.answers["good"] = answer
        assert statuses(FastMCP("shop", auth=at.verifier()), "good") == [503]
        assert verify(at.verifier(), "good") is None
    said = caplog.text
    assert "the token cannot be checked" in said
    assert "s3cret" not in said
    assert "good" not in said


def test_an_endpoint_that_does_not_answer_costs_its_time_and_no_more() -> None:
    with serve() as web:
        web.answer("/introspect", lambda visit: time.sleep(20))
        by = IntrospectionTokenVerifier(
            introspection_url=web.url("/introspect"), client_id="c", client_secret="s", timeout_seconds=0.2
        )
        assert statuses(FastMCP("shop", auth=by), "good") == [503]
