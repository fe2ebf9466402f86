"""Scorecard A7: the JSON-Schema-Test-Suite through the validation of a tool's arguments.

Every required case of draft 2020-12 is judged twice: by the validator alone, and as the argument
``value`` of a tool whose `input_schema` holds the suite's schema. The suite's remote documents are
given as documents; nothing may be fetched.
"""

from __future__ import annotations

import json
import os
import socket

import pytest
from support import published

from fastrpc.errors import ArgumentError, DefinitionError
from fastrpc.schema import describe
from fastrpc.schema.json_schema import Validator

pytest.importorskip("jsonschema_rs", reason="the extra fastrpc-mcp[schema] is not installed")


SUITE = os.path.join(published.FOLDER, "json-schema-test-suite")
REQUIRED_CASES = 1257 if published.IS_FETCHED else 1299

needs_suite = pytest.mark.skipif(not os.path.isdir(SUITE), reason=published.missing())


def read(path: str):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def remote_documents():
    """The documents that the suite expects at http://localhost:1234/, of other drafts left out."""
    folder = os.path.join(SUITE, "remotes")
    documents = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(("draft3", "draft4", "draft6", "v1"))]
        for name in names:
            path = os.path.join(place, name)
            uri = "http://localhost:1234/" + os.path.relpath(path, folder).replace(os.sep, "/")
            documents[uri] = read(path)
    return documents


def groups():
    folder = os.path.join(SUITE, "tests", "draft2020-12")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            for group in read(os.path.join(folder, name)):
                yield name, group


@pytest.fixture
def no_sockets(monkeypatch):
    opened = []

    def refuse(*arguments, **options):
        opened.append(arguments)
        raise OSError("a test asked for no sockets")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    return opened


def complaint_of(validator: Validator, value) -> str:
    try:
        validator.check(value)
    except ArgumentError as error:
        assert 0 < len(str(error)) <= 240  # noqa: PT017
        return str(error)
    return ""


def takes_value(value) -> str:
    return ""


@needs_suite
def test_every_required_case_of_the_suite_is_judged_right_without_a_socket(no_sockets):
    documents = remote_documents()
    wrong, judged = [], 0
    for name, group in groups():
        validator = Validator(group["schema"], documents)
        for case in group["tests"]:
            judged += 1
            if validator.accepts(case["data"]) != case["valid"]:
                wrong.append(f"{name}: {group['description']}: {case['description']}")
            assert (complaint_of(validator, case["data"]) == "") == case["valid"]
    assert wrong == []
    assert judged == REQUIRED_CASES
    assert no_sockets == []


@needs_suite
def test_the_suite_holds_as_arguments_of_a_tool(no_sockets):
    """A schema is given by reference, so that its own ``$id``, anchors and dialect stay its root's."""
    documents = remote_documents()
    wrong, judged = [], 0
    for name, group in groups():
        schema = group["schema"]
        uri = schema.get("$id", "urn:case") if isinstance(schema, dict) else "urn:case"
        if "://" not in uri and not uri.startswith("urn:"):
            uri = "urn:case"
        signature = describe(
            takes_value,
            input_schema={"type": "object", "properties": {"value": {"$ref": uri}}, "required": ["value"]},
            documents={**documents, uri: schema},
        )
        for case in group["tests"]:
            judged += 1
            try:
                accepted = signature.bind({"value": case["data"]}) == [case["data"]]
            except ArgumentError:
                accepted = False
            if accepted != case["valid"]:
                wrong.append(f"{name}: {group['description']}: {case['description']}")
    assert wrong == []
    assert judged == REQUIRED_CASES
    assert no_sockets == []


@pytest.mark.parametrize(
    "reference",
    [
        "http://localhost:1234/integer.json",
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/missing",
        "urn:example:nothing",
    ],
)
def test_a_reference_to_what_was_not_given_is_an_error_at_definition_and_opens_no_socket(
    reference, no_sockets
):
    schema = {"type": "object", "properties": {"value": {"$ref": reference}}}
    with pytest.raises(DefinitionError, match=r"takes_value .*input_schema cannot be used"):
        describe(takes_value, input_schema=schema)
    assert no_sockets == []


def test_a_reference_into_a_given_document_is_followed(no_sockets):
    schema = {"type": "object", "properties": {"value": {"$ref": "https://example.com/a.json#/$defs/n"}}}
    documents = {"https://example.com/a.json": {"$defs": {"n": {"type": "integer"}}}}
    signature = describe(takes_value, input_schema=schema, documents=documents)
    assert signature.bind({"value": 1}) == [1]
    with pytest.raises(ArgumentError, match=r'value: expected integer, got "soon"'):
        signature.bind({"value": "soon"})
    assert no_sockets == []


def test_a_reference_to_a_live_server_never_reaches_it():
    """The validator's own HTTP client is no Python: only a listener can tell that it stays quiet."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        for scheme in ("http", "https"):
            schema = {
                "type": "object",
                "properties": {"value": {"$ref": f"{scheme}://127.0.0.1:{port}/a.json"}},
            }
            with pytest.raises(DefinitionError, match="input_schema cannot be used"):
                describe(takes_value, input_schema=schema)
        dialect = {"$schema": f"http://127.0.0.1:{port}/dialect.json", "type": "object"}
        with pytest.raises(DefinitionError, match="input_schema cannot be used"):
            describe(takes_value, input_schema=dialect)
        outward = {"type": "object", "properties": {"value": {"$ref": "urn:a"}}}
        documents = {"urn:a": {"$ref": f"http://127.0.0.1:{port}/a.json"}}
        with pytest.raises(DefinitionError, match="input_schema cannot be used"):
            describe(takes_value, input_schema=outward, documents=documents)
        with pytest.raises(TimeoutError):
            listener.accept()
