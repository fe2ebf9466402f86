"""The params of a request besides the arguments: `_meta`, and members that no version of MCP defines.

A tool may read them and a proxy forwards them, so they affect what runs. An approval is not bound to them:
clients put fresh ids there, so no repeated call would be equal. Instead they are shown with the arguments and
stored with the approval. An approved call runs with the params that were shown, not with those of the request
that uses the approval (`taken`). Members of the connection (progress token, the envelope of 2026-07-28, the
state of a repeated request) and the ids of a trace pass unchanged. Secrets are masked before anything is
stored; a member with a masked part is taken from the request if its masked form is the same, else left out.
Costs nothing for calls that need no approval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastrpc.guard.approvals.binding import shown
from fastrpc.guard.approvals.canonical import canonical, json_of, members_of, order
from fastrpc.guard.approvals.display import masked_tree
from fastrpc.protocol.versions import HOP_KEYS, HOP_PARAMS
from fastrpc.redaction import MASK

META = "_meta"
PASSED_KEYS = HOP_KEYS | {"traceparent", "tracestate"}
"""Members of ``_meta`` that are neither shown nor replaced."""
CALLED_BY = {"tools/call": ("name", "arguments"), "prompts/get": ("name", "arguments")}
READ_BY = ("uri",)
"""Members of params that an approval shows separately: what is called, and with which arguments."""


def kept(method: str, params: Mapping[str, Any]) -> str:
    """Return the other params of a request in the form in which approvals store them: JSON with secrets
    masked, "" if there are none. Raises Unbindable if they are too long to be read."""
    found = _extra(method, params)
    return shown(canonical(found)) if found else ""


def taken(text: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params with which a request runs after `text` was stored and shown for it."""
    own = _extra(method, params)
    members = dict(members_of(json.loads(text) if text else {}))
    meta = {key: value for key, value in _meta_of(params).items() if key in PASSED_KEYS}
    meta |= _as_shown(dict(members_of(members.pop(META, {}))), own.pop(META, {}))
    named = _named(method)
    found = {key: value for key, value in params.items() if key in named}
    found |= _as_shown(members, own)
    return {**found, META: meta} if meta else found


def _named(method: str) -> frozenset[str]:
    """Return the members of params that are neither shown as other params nor replaced."""
    return (HOP_PARAMS - {META}).union(CALLED_BY.get(method, READ_BY))


def _extra(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    named = _named(method)
    found = {key: value for key, value in params.items() if key not in named and key != META}
    meta = {key: value for key, value in _meta_of(params).items() if key not in PASSED_KEYS}
    return {**found, META: meta} if meta else found


def _meta_of(params: Mapping[str, Any]) -> dict[str, Any]:
    found = params.get(META)
    return found if isinstance(found, dict) else {}


def _as_shown(members: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the members that were shown, in their canonical form; members with a masked part are taken from
    the request."""
    found = {}
    for key, value in members.items():
        if MASK not in json.dumps([key, value]):
            found[key] = json_of(value)
        elif key in own and order(masked_tree(canonical(own[key]), key)) == order(value):
            found[key] = own[key]
    return found
