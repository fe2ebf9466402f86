"""Validates the answers of an engine, including the members that a verb's data must have.

An engine is another program, perhaps of another version. Each answer becomes data or an EngineError,
ENGINE_PROTOCOL if it does not follow the wire format. No I/O.
"""

from __future__ import annotations

import json
import re

import orjson

from .. import _strict_json
from .._errors import (
    ARTIFACT_NOT_FOUND,
    ASSERTION_FAILED,
    CHAIN_NOT_FOUND,
    ENGINE_PROTOCOL,
    FORGE_FAILED,
    INVALID_REQUEST,
    SOLC_FAILED,
    TEST_FAILED,
    VYPER_FAILED,
    EngineError,
)
from .._values import masked_url
from .connection import LONGEST_MESSAGE, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MEMBERS: dict[str, dict[str, type]] = {
    "compile": {"project_id": str, "artifacts": list},
    "test": {"suites": list},
    "simulate": {},
    "deploy": {"address": str},
    "call": {},
    "chain_list": {"chains": list},
    "chain_register": {"id": str},
    "artifact_get": {"artifact": dict},
    "registry_lookup": {"found": bool},
}
"""The members that the data of a verb must have. A list may also be null, as Go writes an empty one."""

OF_COMPILERS = (SOLC_FAILED, VYPER_FAILED, FORGE_FAILED)
FINAL = (*OF_COMPILERS, ASSERTION_FAILED, INVALID_REQUEST, ARTIFACT_NOT_FOUND, CHAIN_NOT_FOUND)
"""Failures of the request itself: `retry` is false here, although tachyon sets it for some of them."""

OF_SOURCES = (*OF_COMPILERS, ASSERTION_FAILED, TEST_FAILED)
"""Failures whose message may contain a URL of a manual, which is shown. In the messages of other failures
URLs are those of nodes and may contain keys: they are masked."""

FEW_DIGITS = 18
"""An integer of so many digits exceeds 64 bits, and orjson makes it a float."""

_URL = re.compile(r"https?://[^\s\"'<>\\]+")
_URL_WITH_USER = re.compile(r"https?://[^\s\"'<>/\\]*@[^\s\"'<>\\]+")


def parsed(text: bytes | str) -> Any:
    """The JSON value, with its integers exact. Raises EngineError(ENGINE_PROTOCOL)."""
    if isinstance(text, bytes) and len(text) - len(text.translate(None, b"0123456789")) <= FEW_DIGITS:
        try:
            return orjson.loads(text)
        except ValueError:
            pass  # the strict parser decides, which also accepts lone surrogates
    try:
        return _strict_json.decode(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        raise protocol_error("sent invalid JSON") from None


def result_of(answer: Any, id: int) -> Any:
    """The result in a JSON-RPC response. Raises EngineError."""
    if not isinstance(answer, dict) or answer.get("jsonrpc") != "2.0":
        raise protocol_error("sent an invalid JSON-RPC response")
    error = answer.get("error")
    if error is not None:
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            raise protocol_error("sent an error without a message")
        raise Refused.of_parameters(error.get("code"), error["message"])
    if type(answer.get("id")) not in (int, float) or answer["id"] != id:
        raise protocol_error("sent an answer to another request")
    return answer.get("result")


def data_of(verb: str, envelope: Any) -> dict[str, Any]:
    """The data in an envelope. Raises EngineError: the engine's own, or ENGINE_PROTOCOL."""
    if not isinstance(envelope, dict) or not isinstance(envelope.get("ok"), bool):
        raise protocol_error("sent no envelope")
    data = envelope.get("data")
    if not envelope["ok"]:
        raise _failure(envelope.get("error"), data)
    if not isinstance(data, dict):
        raise protocol_error("sent an envelope without data")
    for name, kind in MEMBERS[verb].items():
        if data.get(name) is None and kind is list:
            data[name] = []
        if not isinstance(data.get(name), kind):
            raise protocol_error(f"sent data without {name}")
        if kind is list and not all(isinstance(each, dict) for each in data[name]):
            raise protocol_error(f"sent {name} whose entries are not objects")
    return data


def _failure(error: Any, data: Any) -> EngineError:
    """Return the EngineError for a failure that the engine reports; the data beside it, such as test results,
    becomes its details."""
    if not isinstance(error, dict) or not isinstance(error.get("code"), str) or not error["code"]:
        return protocol_error("sent a failure without a code")
    details = error.get("details")
    found = (
        {} if not isinstance(data, dict) else {name: data[name] for name in data if not _is_empty(data[name])}
    )
    if found:
        details = {**found, **details} if isinstance(details, dict) else found
    elif details is not None and not isinstance(details, dict):
        details = {"details": details}
    masks = _URL_WITH_USER if error["code"] in OF_SOURCES else _URL
    message = masks.sub(_masked, str(error.get("message") or error["code"])[:LONGEST_MESSAGE])
    retry = error.get("retry") is True and error["code"] not in FINAL
    if details is not None and "://" in (text := json.dumps(details)):
        details = json.loads(masks.sub(_masked, text))
    return EngineError(error["code"], message, retry=retry, details=details)


def _masked(url: re.Match[str]) -> str:
    return masked_url(url[0])


def _is_empty(value: Any) -> bool:
    """Whether a member is one of Go's zero values, which the data of a failure also contains."""
    return all(map(_is_empty, value.values())) if isinstance(value, dict) else not value


def protocol_error(what: str) -> EngineError:
    return EngineError(ENGINE_PROTOCOL, f"the engine {what}")
