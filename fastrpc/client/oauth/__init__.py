"""OAuth 2.1 for a server at a URL (MCP, authorization): what a user chooses. The value of a client's `auth`.

    async with Client("https://example.com/mcp", auth="oauth") as client: ...
    async with Client("https://example.com/mcp", auth=OAuth(scopes=["files:read"])) as client: ...

`OAuth` is the login of a person in a browser, `ClientCredentials` that of a program without one. The flow is
the official SDK's (extra ``oauth``), which is imported for a login or a refresh and not before:
`credentials` keeps the tokens of one connection and decides when a flow is needed, `flow` runs it,
`login_callback` is the person's part, `token_store` keeps the tokens. Nothing is sent here.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* when a client logs in by OAuth, and which requests wait for it: `credentials.py`, which
  `client/http/wire.py` asks before each request and after each answer; the official SDK's flow: `flow.py`;
  the browser and the redirect: `login_callback.py`; where tokens are kept: `token_store.py`, and in which
  form: `record.py`
"""

from __future__ import annotations

from importlib.util import find_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastrpc.client.oauth.token_store import TokenStore

LOGIN_SECONDS = 300.0


class OAuth:
    """The login of a person in a browser: an authorization code with PKCE (OAuth 2.1, section 4.1).

    `scopes`: are asked for besides those that the server names. `client_name`: the program's name on the page
    of the login. A client is registered with the authorization server by itself, unless one is given:
    `client_id`, with `client_secret` if it has one, or `client_metadata_url`, the https URL of a client ID
    metadata document. `issuer`: the authorization server that `client_id` belongs to; it is used with no
    other. `redirect_port`: the port at 127.0.0.1 to which the browser comes back, with the path
    ``/callback``; 0 for any. `login_seconds`: how long a person may take. `open_browser`: is called with the
    address of the page in a thread, instead of the system's browser; if it returns False, the address is
    written to standard error. `store`: keeps the tokens, by default the system's keyring where there is one,
    else a `FileStore`.

    One object may serve several clients and servers. Raises ImportError without the extra ``oauth``, and
    ValueError.
    """

    needs_person = True
    """Whether a login opens a browser."""

    def __init__(
        self,
        *,
        scopes: Sequence[str] = (),
        client_name: str = "fastrpc",
        client_id: str | None = None,
        client_secret: str | None = None,
        client_metadata_url: str | None = None,
        issuer: str | None = None,
        redirect_port: int = 0,
        login_seconds: float = LOGIN_SECONDS,
        open_browser: Callable[[str], object] | None = None,
        store: TokenStore | None = None,
    ) -> None:
        if find_spec("mcp") is None or find_spec("httpx2") is None:  # the SDK before 2 has no httpx2
            raise ImportError("auth needs the official SDK: pip install 'fastrpc-mcp[oauth]'")
        if client_secret is not None and client_id is None:
            raise ValueError("client_secret: expected a client_id with it")
        if client_metadata_url is not None:
            if client_id is not None:
                raise ValueError("client_id and client_metadata_url exclude each other")
            if not client_metadata_url.startswith("https://"):
                raise ValueError(
                    f"client_metadata_url: expected an https URL, got {client_metadata_url!r:.80}"
                )
        if not 0 <= redirect_port <= 65535:
            raise ValueError(f"redirect_port: expected 0 to 65535, got {redirect_port!r:.20}")
        self.scopes = _checked_scopes(scopes)
        self.client_name = client_name
        self.client_id = client_id
        self.client_secret = client_secret
        self.client_metadata_url = client_metadata_url
        self.issuer = issuer
        self.redirect_port = redirect_port
        self.login_seconds = login_seconds
        self.open_browser = open_browser
        self._store = store

    @property
    def identity(self) -> str:
        """What tells the tokens of this client from those of others for the same server."""
        return self.client_id or self.client_metadata_url or ""

    def forget(self, url: str) -> None:
        """Delete what is kept of a login at a server: the next client logs in anew. May block. Raises
        OSError."""
        from fastrpc.client.oauth.record import key_of

        self.store().delete(key_of(url, self.identity))

    def store(self) -> TokenStore:
        """Return what keeps the tokens. May block."""
        if self._store is None:
            from fastrpc.client.oauth.token_store import default_store

            self._store = default_store()
        return self._store


class ClientCredentials(OAuth):
    """The login of a program by its own credentials (MCP extension: OAuth client credentials).

    Either `client_secret`, which is sent by HTTP basic authentication, or with `in_body` in the form; or
    `private_key`, a key in PEM format that signs an assertion with `algorithm` (RFC 7523). `issuer`: the
    authorization server that issued the credentials; without it they are sent to the one that the MCP server
    names, whichever that is. Tokens are kept in memory, unless `store` is given.

    Raises ImportError without the extra ``oauth``, and ValueError.
    """

    needs_person = False

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        private_key: str | None = None,
        algorithm: str = "RS256",
        in_body: bool = False,
        scopes: Sequence[str] = (),
        issuer: str | None = None,
        store: TokenStore | None = None,
    ) -> None:
        from fastrpc.client.oauth.token_store import MemoryStore

        if (client_secret is None) == (private_key is None):
            raise ValueError("expected either client_secret or private_key")
        super().__init__(
            scopes=scopes,
            client_id=client_id,
            client_secret=client_secret,
            issuer=issuer,
            store=store or MemoryStore(),
        )
        self.private_key = private_key
        self.algorithm = algorithm
        self.in_body = in_body


def auth_of(auth: object) -> OAuth:
    """Return the value of a client's `auth`: ``"oauth"`` is `OAuth` as it is. Raises ValueError, and
    ImportError without the extra."""
    if auth == "oauth":
        return OAuth()
    if not isinstance(auth, OAuth):
        raise ValueError(f'auth: expected "oauth", OAuth or ClientCredentials, got {type(auth).__name__}')
    return auth


def _checked_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """Return scopes, each a token of OAuth (RFC 6749, 3.3). Raises ValueError."""
    if isinstance(scopes, str):
        raise ValueError("scopes: expected a list of str, got a str")
    for scope in scopes:
        if not scope or any(not "!" <= character <= "~" or character in '"\\' for character in scope):
            raise ValueError(f"scopes: {scope!r:.80} is no scope")
    return tuple(scopes)
