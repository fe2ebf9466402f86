"""Content blocks: the whole block where a version knows it, the nearest where it does not."""

from __future__ import annotations

import asyncio
import base64
import datetime
import importlib.util
import json
import os
from typing import Any

import pytest

from fastrpc import DefinitionError, Server, ToolResult
from fastrpc.content import (
    Audio,
    Content,
    EmbeddedResource,
    Image,
    ResourceLink,
    Text,
    annotations_of,
    block_of,
    checked_extensions,
    checked_meta,
)
from fastrpc.protocol.versions import STATELESS, VERSIONS, knows_content
from fastrpc.testing import Client

jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="needs the extra 'schema'")
from support import published  # noqa: E402
from support.schema_recorder import Schema  # noqa: E402

FIRST, SECOND, THIRD, FOURTH, _ = VERSIONS
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HINTS = {
    "audience": ["user"],
    "priority": 0.5,
    "last_modified": datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
}
SENT_HINTS = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T00:00:00+00:00"}
META = {"example.org/key": 1}
ICONS = [{"src": "https://example.org/i.png", "sizes": ["48x48"]}]
EACH: list[Content] = [
    Text("t", annotations=HINTS, meta=META),
    Image(b"png", annotations=HINTS, meta=META),
    Audio(b"wav", annotations=HINTS, meta=META),
    EmbeddedResource("docs://a", text="t", mime_type="text/plain", annotations=HINTS, meta=META),
    EmbeddedResource("docs://b", data=b"\0", annotations=HINTS, meta=META),
    ResourceLink(
        "docs://c", "c", title="C", description="The third.", mime_type="text/plain", size=3,
        icons=ICONS, annotations=HINTS, meta=META,
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def types(data_folder: str) -> dict[str, Schema]:
    folder = os.path.join(data_folder, "mcp-schema")
    return {version: Schema(folder, version) for version in published.versions()}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("content", EACH, ids=lambda content: type(content).__name__)
def test_each_block_is_valid_in_each_version(
    version: str, content: Content, types: dict[str, Schema]
) -> None:
    block = block_of(content, version)
    ending = {"resultType": "complete"} if version == STATELESS else {}
    types[version].check("CallToolResult", {"content": [block], **ending})
    assert knows_content(block["type"], version)
    assert block["annotations"]["audience"] == ["user"]
    assert ("lastModified" in block["annotations"]) == (version not in (FIRST, SECOND))
    assert ("_meta" in block) == (version not in (FIRST, SECOND))
    assert None not in block.values()


@pytest.mark.usefixtures("every_schema")
def test_the_check_refuses_a_block_of_a_later_version(types: dict[str, Schema]) -> None:
    audio = block_of(EACH[2], STATELESS)
    with pytest.raises(jsonschema_rs.ValidationError):
        types[FIRST].check("CallToolResult", {"content": [audio]})


@pytest.mark.parametrize("version", [THIRD, FOURTH, STATELESS])
def test_blocks_say_all_that_was_said(version: str) -> None:
    said = {"annotations": SENT_HINTS, "_meta": META}
    resource = {"uri": "docs://a", "mimeType": "text/plain", "text": "t"}
    blob = {"uri": "docs://b", "blob": "AA=="}
    link: dict[str, Any] = {
        "type": "resource_link", "uri": "docs://c", "name": "c", "title": "C", "description": "The third.",
        "mimeType": "text/plain", "size": 3, **({} if version == THIRD else {"icons": ICONS}), **said,
    }  # fmt: skip
    assert [block_of(content, version) for content in EACH] == [
        {"type": "text", "text": "t", **said},
        {"type": "image", "data": "cG5n", "mimeType": "image/png", **said},
        {"type": "audio", "data": "d2F2", "mimeType": "audio/wav", **said},
        {"type": "resource", "resource": resource, **said},
        {"type": "resource", "resource": blob, **said},
        link,
    ]


def test_a_sound_becomes_a_resource_where_there_is_no_audio() -> None:
    block = block_of(Audio(b"wav", "audio/ogg"), FIRST)
    assert block["type"] == "resource"
    assert base64.b64decode(block["resource"]["blob"]) == b"wav"
    assert block["resource"]["mimeType"] == "audio/ogg"
    other = block_of(Audio(b"other"), FIRST)
    assert block["resource"]["uri"] != other["resource"]["uri"]
    assert block_of(Audio(b"wav"), SECOND)["type"] == "audio"


@pytest.mark.parametrize("version", [FIRST, SECOND])
def test_a_link_becomes_a_text_where_there_are_no_links(version: str) -> None:
    assert block_of(EACH[5], version)["text"] == "C: docs://c (text/plain, 3 bytes)\nThe third."
    assert block_of(ResourceLink("docs://d", "d", size=0), version) == {
        "type": "text",
        "text": "d: docs://d (0 bytes)",
    }


def test_texts_and_blocks_from_elsewhere_go_the_same_way() -> None:
    assert block_of("t", FIRST) == {"type": "text", "text": "t"}
    link = {"type": "resource_link", "uri": "docs://d", "name": "d", "_meta": META}
    assert block_of(link, THIRD) == link
    assert block_of(link, SECOND) == {"type": "text", "text": "d: docs://d"}
    embedded: dict[str, Any] = {
        "type": "resource",
        "resource": {"uri": "docs://a", "text": "", "_meta": META},
    }
    assert block_of(embedded, FIRST)["resource"] == {"uri": "docs://a", "text": ""}
    assert embedded["resource"]["_meta"] == META, "the caller's own is left alone"
    assert block_of({"type": "tool_use", "id": "1"}, STATELESS) == {"type": "tool_use", "id": "1"}
    for wrong in (5, None, {"text": "t"}, b"bytes"):
        with pytest.raises(TypeError, match="content: expected str"):
            block_of(wrong, STATELESS)  # type: ignore[arg-type]


def test_empty_annotations_are_left_out() -> None:
    only_new = Text("t", annotations={"last_modified": "2026-01-02"})
    assert block_of(only_new, FIRST) == {"type": "text", "text": "t"}
    assert block_of(Text("t", annotations={}), STATELESS) == {"type": "text", "text": "t"}


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"audience": "model"}, "audience: expected user or assistant, got 'model'"),
        ({"priority": 2}, "priority: expected a number from 0 to 1, got 2"),
        ({"priority": True}, "priority: expected a number"),
        ({"prio": 1}, "'prio' is not one of audience, priority, last_modified"),
    ],
)
def test_wrong_annotations_are_refused(annotations: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Text("t", annotations=annotations)


def test_one_reader_may_be_named_without_a_list() -> None:
    assert annotations_of({"audience": "user", "priority": None}) == {"audience": ["user"]}


@pytest.mark.parametrize(
    "key",
    ["a", "a.b-c_d", "ui/resource", "example.org/k", "com.example-1.x/a.b", "io.modelcontextprotocol/ui",
     "traceparent", "a/", "1"],
)  # fmt: skip
def test_well_formed_keys_of_meta_pass(key: str) -> None:
    assert checked_meta({key: 1}) == {key: 1}


@pytest.mark.parametrize(
    "key",
    ["", "/", "/a", "_a", "a_", "-", "a b", "a/b/c", "1x/a", "a-/b", "a..b/c", ".a/b", "é", "é/a", "a/é",
     5, None],
)  # fmt: skip
def test_malformed_keys_of_meta_are_refused(key: Any) -> None:
    with pytest.raises(ValueError, match=r"meta: .* is not a valid key"):
        checked_meta({key: 1})
    with pytest.raises(ValueError, match="is not a valid key"):
        Text("t", meta={key: 1})
    with pytest.raises(ValueError, match="is not a valid key"):
        ToolResult("t", meta={key: 1})
    with pytest.raises(DefinitionError, match="is not a valid key"):
        Server("t").add_tool(lambda: "t", name="t", meta={key: 1})


@pytest.mark.parametrize("extensions", [{"ui": {}}, {"a b/c": {}}, {"example.org/x": True}, {5: {}}])
def test_extensions_have_names_with_a_prefix_and_settings(extensions: Any) -> None:
    with pytest.raises(ValueError, match="extensions: "):
        checked_extensions(extensions)
    with pytest.raises(ValueError, match="extensions: "):
        Server("t", extensions=extensions)


def test_an_embedded_resource_has_one_content() -> None:
    for contents in ({}, {"text": "", "data": b""}):
        with pytest.raises(ValueError, match="either text= or data="):
            EmbeddedResource("docs://a", **contents)  # type: ignore[arg-type]
    assert block_of(EmbeddedResource("a:b", text=""), FIRST)["resource"] == {"uri": "a:b", "text": ""}
    assert block_of(EmbeddedResource("a:b", data=b""), FIRST)["resource"] == {"uri": "a:b", "blob": ""}


def test_media_are_read_from_files(tmp_path: Any) -> None:
    for name, kind, mime_type in (("a.PNG", Image, "image/png"), ("b.mp3", Audio, "audio/mpeg")):
        path = tmp_path / name
        path.write_bytes(b"bytes")
        made = kind.from_file(path)
        assert (made.data, made.mime_type) == (b"bytes", mime_type)
    with pytest.raises(ValueError, match="no image type is known by this ending"):
        Image.from_file(tmp_path / "b.mp3")
    assert Image.from_file(tmp_path / "b.mp3", "image/x-own").mime_type == "image/x-own"
    with pytest.raises(FileNotFoundError):
        Image.from_file(tmp_path / "none.png")


# ------------------------------------------------------------------------------------ over the wire


def example() -> Any:
    path = os.path.join(REPOSITORY, "examples", "content.py")
    spec = importlib.util.spec_from_file_location("content_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("version", VERSIONS)
def test_the_example_gives_each_kind_of_content_in_each_version(version: str) -> None:
    async def scenario() -> None:
        async with Client(example().app, version=version) as client:
            results = {tool["name"]: await client.call(tool["name"]) for tool in await client.tools()}
        for result in results.values():
            assert not result.is_error, result
        kinds = {name: [block["type"] for block in result.content] for name, result in results.items()}
        assert kinds == {
            "pixel": ["text", "image"],
            "beep": ["audio" if version != FIRST else "resource"],
            "report": ["resource", "resource_link" if version not in (FIRST, SECOND) else "text"],
            "weather": ["text"],
            "lookup": ["text"],
        }
        told = version not in (FIRST, SECOND)
        assert results["weather"].structured == ({"celsius": 21.5, "sky": "clear"} if told else None)
        assert json.loads(results["weather"].text) == {"celsius": 21.5, "sky": "clear"}
        assert results["lookup"].meta["example.org/source"] == "cache"

    asyncio.run(scenario())


@pytest.mark.parametrize("version", VERSIONS)
def test_helpers_and_texts_mix_in_a_list(version: str) -> None:
    app = Server("t")

    @app.tool
    def blocks() -> Any:
        return ["a", Image(b"png"), Text("b")]

    @app.tool
    def values() -> Any:
        return ["a", "b"]

    async def scenario() -> None:
        async with Client(app, version=version) as client:
            got = await client.call("blocks")
            assert [block["type"] for block in got.content] == ["text", "image", "text"]
            assert (await client.call("values")).text == '["a","b"]'

    asyncio.run(scenario())
