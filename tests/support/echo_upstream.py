"""An MCP server that shows what reached it, and puts a mark into all that it sends: for tests of proxies.

Run as a program it serves over stdio; `play` does so over HTTP (`support.scripted_server`), `Stateless` in
2026-07-28. Without fastrpc: what it sends is said here alone. The params of each request come back in the
``_meta`` of its result, under `GOT`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

GOT = "example.com/got"
HEARD = "example.com/heard"
heard: list[dict[str, Any]] = []
"""The notifications that have come, but for `notifications/initialized`."""
CANCELLED = "notifications/cancelled"
VENDOR = "notifications/x-vendor/said"
ECHO = "notifications/x-vendor/echo"
"""Is sent back, outside of any call."""
META = {"example.com/mark": {"deep": [1, None]}, "traceparent": "00-server"}
MARK = {"x-mark": {"n": 1}}
ICONS = [{"src": "https://example.com/i.png", "mimeType": "image/png", "theme": "dark"}]
ANNOTATIONS = {"priority": 0.5, "audience": ["user"], "x-annotation": True}
MARKED = {"title": "Titled", "icons": ICONS, "_meta": META, **MARK}
URI = "echo://fixed"
TOOL = {
    "name": "act",
    "description": "acts",
    "inputSchema": {"type": "object", "x-schema": 1},
    "annotations": {"readOnlyHint": True, "x-hint": 1},
    **MARKED,
}
RESOURCE = {
    "uri": URI,
    "name": "fixed",
    "mimeType": "text/x",
    "size": 3,
    "annotations": ANNOTATIONS,
    **MARKED,
}
TEMPLATE = {"uriTemplate": "echo://at/{x}", "name": "at", "annotations": ANNOTATIONS, **MARKED}
PROMPT = {
    "name": "say",
    "description": "listed",
    "arguments": [{"name": "style", "required": False, "title": "Style", **MARK}],
    **MARKED,
}
LISTS: dict[str, tuple[str, Any]] = {
    "tools/list": ("tools", TOOL),
    "resources/list": ("resources", RESOURCE),
    "resources/templates/list": ("resourceTemplates", TEMPLATE),
    "prompts/list": ("prompts", PROMPT),
}
CAPABILITIES = {
    "tools": {},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
    "logging": {},
}
BLOCK = {"type": "text", "text": "done", "annotations": ANNOTATIONS, "_meta": META, **MARK}
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "?",
        "requestedSchema": {"type": "object", "properties": {}},
        "_meta": {**META, "progressToken": "the server's own"},
        **MARK,
    },
}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request, with what has reached this server."""
    meta = {**META, GOT: params}
    if (params.get("arguments") or {}).get("heard"):
        meta[HEARD] = list(heard)
    if method in LISTS:
        member, entry = LISTS[method]
        return {member: [entry]}
    if method == "tools/call":
        structured = {"structuredContent": None} if params["arguments"].get("null") else {}
        return {"content": [BLOCK], "_meta": meta, **MARK, **structured}
    if method == "resources/read":
        contents = {"uri": params["uri"], "mimeType": "text/x", "text": "t", "_meta": META, **MARK}
        return {"contents": [contents], "_meta": meta, **MARK}
    if method == "prompts/get":
        message = {"role": "user", "content": BLOCK, **MARK}
        return {"description": "of this result", "messages": [message], "_meta": meta, **MARK}
    if method == "completion/complete":
        return {"completion": {"values": ["v"], "total": 1, "hasMore": False, **MARK}, "_meta": meta, **MARK}
    return {}


def notifications_of(params: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a call sends before its result."""
    sent: list[dict[str, Any]] = []
    token = (params.get("_meta") or {}).get("progressToken")
    if token is not None:
        report = {"progressToken": token, "progress": 1, "total": 2, "message": "half", "_meta": META, **MARK}
        sent.append({"method": "notifications/progress", "params": report})
    if params["arguments"].get("log"):
        log = {"level": "warning", "data": "careful", "logger": "echo", "_meta": META, **MARK}
        sent.append({"method": "notifications/message", "params": log})
    if params["arguments"].get("touch"):
        sent.append(
            {"method": "notifications/resources/updated", "params": {"uri": URI, "_meta": META, **MARK}}
        )
    if params["arguments"].get("vendor"):
        sent.append({"method": VENDOR, "params": {"_meta": META, **MARK}})
    return [{"jsonrpc": "2.0", **message} for message in sent]


def hear(message: dict[str, Any]) -> None:
    if message["method"] != "notifications/initialized":
        heard.append(message)


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    info = {"name": "echo", "version": "1"}
    return {"protocolVersion": params["protocolVersion"], "capabilities": CAPABILITIES, "serverInfo": info}


async def play(asked: Any, say: Any) -> None:
    """Answer a request over HTTP, in a session."""
    if asked.method != "POST":
        await say.answer(405)
        return
    message = asked.message
    params = message.get("params") or {}
    if "id" not in message or "method" not in message:
        if "method" in message:
            hear(message)
        await say.answer(202)
    elif message["method"] == "initialize":
        await say.result(asked, initialize(params), mcp_session_id="one")
    else:
        await _stream(message, params, {}, say)


async def play_stateless(asked: Any, say: Any) -> None:
    """Answer a request over HTTP, in 2026-07-28."""
    if asked.method != "POST":
        await say.answer(405)
        return
    message = asked.message
    params = message.get("params") or {}
    if "id" not in message:
        hear(message)
        await say.answer(202)
    elif message["method"] == "server/discover":
        known = {"supportedVersions": ["2026-07-28"], "capabilities": {**CAPABILITIES, "resources": {}}}
        await say.result(asked, known)
    elif params.get("arguments", {}).get("ask") and "inputResponses" not in params:
        asks = {"resultType": "input_required", "inputRequests": {"q": QUESTION}, "requestState": "s"}
        await say.result(asked, asks)
    else:
        await _stream(message, params, {"resultType": "complete"}, say)


async def _stream(message: dict[str, Any], params: dict[str, Any], more: dict[str, Any], say: Any) -> None:
    await say.stream()
    if params.get("arguments", {}).get("wait"):
        await asyncio.sleep(60)
    for sent in notifications_of(params) if message["method"] == "tools/call" else ():
        await say.event(sent)
    result = {**result_of(message["method"], params), **more}
    await say.event({"jsonrpc": "2.0", "id": message["id"], "result": result})


def main() -> None:
    """Serve over stdio. A call with the argument `ask` sends a request first, and returns its answer too;
    with `unask` it takes it back and does not wait; one with `wait` is not answered."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            hear(message)
            if message["method"] == ECHO:
                print(json.dumps({**message, "method": f"{ECHO}ed"}), flush=True)
            continue
        if "method" not in message:
            continue
        method, params = message["method"], message.get("params") or {}
        if (params.get("arguments") or {}).get("wait"):
            continue
        answered: dict[str, Any] | None = None
        if method == "tools/call":
            for sent in notifications_of(params):
                print(json.dumps(sent), flush=True)
            if params["arguments"].get("ask"):
                print(json.dumps({"jsonrpc": "2.0", "id": "q", **QUESTION}), flush=True)
                if params["arguments"].get("unask"):
                    sys.stdin.readline()  # the client has got the question
                    taken_back = {"requestId": "q", "reason": "not needed", "_meta": META, **MARK}
                    print(
                        json.dumps({"jsonrpc": "2.0", "method": CANCELLED, "params": taken_back}), flush=True
                    )
                    continue
                reply = json.loads(sys.stdin.readline())
                answered = reply.get("result", reply.get("error"))
                if answered is None:  # cancelled: the client answers by calling again
                    continue
        result = initialize(params) if method == "initialize" else result_of(method, params)
        if answered:
            result["_meta"]["example.com/answer"] = answered
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
