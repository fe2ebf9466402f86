"""The official TypeScript client, in both of its lines, does over HTTP all that it does over a pipe.

The checks are those of `test_typescript_client`, word for word, by the same script, over Streamable HTTP and
HTTP+SSE. The servers are begun here, each with a token. The script writes down what passes, and the recorder
holds it against the version's schema.
"""

from __future__ import annotations

import contextlib
import glob
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.official_client import serve_http
from support.protocol import SESSION_VERSIONS, STATELESS
from test_typescript_client import (
    SERVERS,
    all_pass,
    folder,  # noqa: F401 - a fixture
)

LINES = [
    *(("v1", version) for version in SESSION_VERSIONS),
    *(("v2", version) for version in (*SESSION_VERSIONS, STATELESS)),
]
SESSIONS = [
    *((line, version, "http") for line, version in LINES),
    # HTTP+SSE carries what a pipe does, as it does: its own version, and the newest one it may speak.
    *(
        (line, version, "sse")
        for line in ("v1", "v2")
        for version in (SESSION_VERSIONS[0], SESSION_VERSIONS[-1])
    ),
]


@pytest.mark.long
@pytest.mark.timeout(660)  # the packages may have to be installed
@pytest.mark.parametrize(("line", "version", "over"), SESSIONS)
def test_the_typescript_client_is_served_every_feature_over_http(
    line: str,
    version: str,
    over: str,
    folder: str,  # noqa: F811
    tmp_path: Any,
    recorder: Any,
) -> None:
    with contextlib.ExitStack() as running, ThreadPoolExecutor(len(SERVERS)) as at_once:
        begun = at_once.map(running.enter_context, map(serve_http, SERVERS.values()))
        places = {}
        for name, server in zip(SERVERS, begun, strict=True):
            places[name] = {"http": server.url, "sse": server.sse_url, "token": server.token}
        (tmp_path / "servers.json").write_text(json.dumps(places))
        all_pass(folder, line, version, str(tmp_path), over)
    traces = glob.glob(str(tmp_path / "*.trace"))
    assert len(traces) == len(SERVERS) + 1  # one has two clients
    for trace in traces:
        before = recorder.lines
        recorder.replay(trace)
        assert recorder.lines > before, f"{trace} has nothing of the server's"
