"""An authorization server on loopback at which people sign in: OpenID Connect's code flow, with PKCE.

    with OpenIdServer() as login:
        login.person = {"sub": "ada", "groups": ["ops"]}

Whoever comes to it is `person`, without a form. `changes` replace claims of the ID token, `key` signs it, and
`answers` of `AuthorizationServer` replace whole answers. A code is good once, for its client, redirect,
verifier and secret, as RFC 6749 and RFC 7636 demand; anything else gets `invalid_grant`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from support.token_issuer import OPENID, RSA, AuthorizationServer, Key, send

CLIENT, SECRET = "fastrpc-dashboard", "s3cret of: the client"


class OpenIdServer(AuthorizationServer):
    """See the module."""

    def __init__(self) -> None:
        super().__init__(document=OPENID)
        self.person: dict[str, Any] = {"sub": "ada"}
        self.changes: dict[str, Any] = {}
        self.key: Key = RSA
        self.denies = ""
        self.codes: dict[str, dict[str, str]] = {}
        self.forms: list[dict[str, str]] = []
        """What came to the token endpoint."""
        self.makes: Any = None
        """Makes the answer to a good code instead of this server, of the claims."""
        self.metadata |= {
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
        }
        handler: Any = self._http.RequestHandlerClass
        handler.do_POST = lambda request: self._token(request)
        plain = handler.do_GET

        def get(request: Any) -> None:
            if request.path.startswith("/authorize?"):
                self.asked.append("/authorize")
                self._authorize(request)
            else:
                plain(request)

        handler.do_GET = get

    def _authorize(self, request: Any) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}
        answer = {"state": query["state"], "iss": self.issuer}
        if self.denies:
            answer["error"] = self.denies
        else:
            answer["code"] = f"code-{len(self.codes)}"
            self.codes[answer["code"]] = query
        place = f"{query['redirect_uri']}?{urlencode(answer)}"
        send(request, b"", 302, Location=place)

    def _token(self, request: Any) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        scheme, _, basic = request.headers.get("Authorization", "").partition(" ")
        if scheme == "Basic":
            user, _, secret = base64.b64decode(basic).decode().partition(":")
            form |= {"client_id": unquote(user), "client_secret": unquote(secret)}
        self.forms.append(form)
        begun = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        is_good = (
            begun is not None
            and form.get("client_secret") == SECRET
            and form.get("grant_type") == "authorization_code"
            and begun["client_id"] == form.get("client_id") == CLIENT
            and begun["redirect_uri"] == form.get("redirect_uri")
            and begun["code_challenge"] == challenge
            and begun["code_challenge_method"] == "S256"
        )
        if not is_good or begun is None:
            send(request, json.dumps({"error": "invalid_grant"}).encode(), 400)
            return
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": begun["nonce"],
            **self.person,
            **self.changes,
        }
        given = {name: value for name, value in claims.items() if value is not None}
        answer = {"access_token": "x", "token_type": "Bearer", "id_token": self.key.sign(given, typ="JWT")}
        send(request, json.dumps(answer if self.makes is None else self.makes(given)).encode())
