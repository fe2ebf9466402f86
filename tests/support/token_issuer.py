"""An authorization server on loopback: it shows metadata and keys, and signs access tokens (JWTs).

    with AuthorizationServer() as issuing:
        token = issuing.token(sub="ada", groups=["ops"])

Its `answers`, by path, may be replaced by others that fail; `asked` is what it was asked for. The keys are of
each kind; `STRANGER` says that it is `CURVE`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

RESOURCE = "https://mcp.test/mcp"
CLASSIC, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"


class Key:
    """A key of an authorization server, and what it shows of it."""

    def __init__(self, id: str, algorithm: str, private: Any = None) -> None:
        self.id = id
        self.algorithm = algorithm
        writer: Any
        if algorithm[:2] in ("RS", "PS"):
            self.private: Any = private or rsa.generate_private_key(65537, 2048)
            writer = RSAAlgorithm
        elif algorithm == "EdDSA":
            self.private, writer = ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm
        else:
            self.private, writer = ec.generate_private_key(ec.SECP256R1()), ECAlgorithm
        self.shown = {**writer.to_jwk(self.private.public_key(), as_dict=True), "kid": id, "use": "sig"}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        headers = {"kid": self.id, "typ": "at+jwt", **header}
        given = {name: value for name, value in headers.items() if value is not None}
        return jwt.encode(claims, self.private, algorithm=self.algorithm, headers=given)


RSA, CURVE, EDWARDS = Key("r", "RS256"), Key("c", "ES256"), Key("e", "EdDSA")
PSS = Key("p", "PS384", RSA.private)
STRANGER = Key("c", "ES256")  # says that it is CURVE


class AuthorizationServer:
    """Shows metadata and keys, counts who asks, and fails in the ways that `answers` says."""

    def __init__(self, *keys: Key, path: str = "", document: str = CLASSIC) -> None:
        self.keys = [key.shown for key in keys or (RSA, PSS, CURVE, EDWARDS)]
        self.asked: list[str] = []
        self.answers: dict[str, Callable[[Any], object]] = {}
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                server.answers.get(self.path, lambda handler: send(handler, b"nothing", status=404))(self)

            def log_message(self, *values: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.everywhere = f"http://0.0.0.0:{self._http.server_address[1]}/keys?of=all"
        self.issuer = self.origin + path
        self.place = path + document if document == OPENID else document + path
        self.metadata: dict[str, Any] = {"issuer": self.issuer, "jwks_uri": f"{self.origin}/keys?of=all"}
        self.answers[self.place] = lambda handler: send(handler, json.dumps(self.metadata).encode())
        self.answers["/keys?of=all"] = lambda handler: send(handler, json.dumps({"keys": self.keys}).encode())
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> AuthorizationServer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Claims of a right token; None takes one away."""
        now = int(time.time())
        usual = {"iss": self.issuer, "sub": "ada", "aud": RESOURCE, "iat": now, "exp": now + 300}
        return {name: value for name, value in {**usual, **changes}.items() if value is not None}

    def token(self, key: Key = CURVE, **changes: Any) -> str:
        return key.sign(self.claims(**changes))


def send(handler: Any, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    try:
        handler.wfile.write(body)
    except OSError:
        pass
