"""Servers made of OpenAPI documents: what is listed, which HTTP request a call makes, what its result is."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import httpx
import pytest

from fastrpc import Server
from fastrpc.compat.fastmcp import FastMCP, MCPType, RouteMap
from fastrpc.errors import DefinitionError
from fastrpc.openapi import add_operations, operations_of
from fastrpc.testing import Client

pytest.importorskip("openapi_pydantic", reason="needs the extra openapi")

REF = "#/components/schemas/"
TEXT: dict[str, Any] = {"type": "string"}
TEXTS: dict[str, Any] = {"type": "array", "items": TEXT}
PETS: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "http://pets.example/api"}],
    "paths": {
        "/pets": {
            "get": {
                "operationId": "list_pets__pets_get",
                "description": "All pets.",
                "tags": ["pet"],
                "parameters": [
                    {
                        "name": "limit", "in": "query", "description": "How many",
                        "schema": {"type": "integer"},
                    },
                    {"name": "kinds", "in": "query", "schema": TEXTS},
                    {
                        "name": "ids", "in": "query", "explode": False,
                        "schema": {"type": "array", "items": {"type": "integer"}},
                    },
                    {"name": "filter", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
                    {"name": "X-Key", "in": "header", "required": True, "schema": {"type": "string"}},
                    {"name": "session", "in": "cookie", "schema": {"type": "string"}},
                ],
                "responses": {
                    "200": {
                        "description": "ok",
                        "content": {
                            "application/json": {"schema": {"type": "array", "items": {"$ref": f"{REF}Pet"}}}
                        },
                    }
                },
            },
            "post": {
                "operationId": "addPet",
                "summary": "Add one",
                "requestBody": {"$ref": "#/components/requestBodies/Pet"},
                "responses": {"201": {"$ref": "#/components/responses/Pet"}},
            },
        },
        "/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {"summary": "One pet", "responses": {"200": {"description": "ok"}}},
            "put": {
                "operationId": "putPet",
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"type": "object", "properties": {"id": {"type": "integer"}}}
                        }
                    }
                },
                "responses": {"200": {"description": "ok"}},
            },
            "delete": {"operationId": "delPet", "responses": {"204": {"description": "gone"}}},
        },
        "/form": {
            "post": {
                "operationId": "form",
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {"type": "object", "properties": {"a": TEXT, "b": {"type": "boolean"}}}
                        }
                    }
                },
                "responses": {"200": {"description": "ok"}},
            }
        },
        "/texts": {
            "post": {
                "operationId": "texts",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": TEXTS}},
                },
                "responses": {"200": {"description": "ok"}},
            }
        },
    },
    "components": {
        "schemas": {
            "Pet": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "nullable": True, "example": "Tom"},
                    "age": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                    "children": {"type": "array", "items": {"$ref": f"{REF}Pet"}},
                },
                "required": ["name"],
            }
        },
        "requestBodies": {
            "Pet": {"required": True, "content": {"application/json": {"schema": {"$ref": f"{REF}Pet"}}}}
        },
        "responses": {
            "Pet": {"description": "made", "content": {"application/json": {"schema": {"$ref": f"{REF}Pet"}}}}
        },
    },
}  # fmt: skip


class Api:
    """An HTTP API in memory: it remembers the requests and gives one answer."""

    def __init__(self, status: int = 200, **answer: Any) -> None:
        self.answer = answer or {"json": {"ok": True}}
        self.status = status
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(self.status, **self.answer)

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self), base_url="http://pets.example/api")

    @property
    def last(self) -> str:
        request = self.requests[-1]
        return f"{request.method} {request.url.raw_path.decode()}"


def served(api: Api, **options: Any) -> Server:
    server = Server("pets")
    add_operations(server, PETS, api.client(), **options)
    return server


def tools_of(server: Server) -> dict[str, Any]:
    async def run() -> Any:
        async with Client(server) as client:
            return {tool["name"]: tool for tool in (await client.request("tools/list", {}))["tools"]}

    found: dict[str, Any] = asyncio.run(run())
    return found


def call(server: Server, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    async def run() -> Any:
        async with Client(server) as client:
            return await client.request("tools/call", {"name": name, "arguments": arguments})

    found: dict[str, Any] = asyncio.run(run())
    return found


def test_each_operation_is_a_tool_with_its_method_s_risk() -> None:
    tools = tools_of(served(Api()))
    assert list(tools) == ["list_pets", "addPet", "One_pet", "putPet", "delPet", "form", "texts"]
    assert tools["list_pets"]["description"] == "All pets."
    assert tools["addPet"]["description"] == "Add one"
    assert tools["delPet"]["description"] == "Executes DELETE /pets/{id}"
    assert tools["list_pets"]["_meta"] == {"fastmcp": {"tags": ["pet"]}}
    assert tools["list_pets"]["annotations"]["readOnlyHint"] is True
    assert (
        tools["addPet"]["annotations"]["readOnlyHint"]
        is tools["addPet"]["annotations"]["destructiveHint"]
        is False
    )
    assert tools["delPet"]["annotations"]["destructiveHint"] is True


def test_schemas_are_of_json_schema_2020_12_and_refer_to_nothing_outside() -> None:
    tools = tools_of(served(Api()))
    assert tools["list_pets"]["inputSchema"]["properties"]["limit"] == {
        "type": "integer",
        "description": "How many",
    }
    assert tools["list_pets"]["inputSchema"]["required"] == ["X-Key"]
    schema = tools["addPet"]["inputSchema"]
    assert schema["properties"]["name"] == {"type": ["string", "null"], "examples": ["Tom"]}
    assert schema["properties"]["age"] == {"type": "integer", "exclusiveMinimum": 0}
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Pet"}
    assert schema["$defs"]["Pet"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Pet"}
    assert schema["required"] == ["name"]


def test_parameters_go_where_the_document_says() -> None:
    api = Api(json=[1])
    arguments = {
        "limit": 2,
        "kinds": ["a b", "c"],
        "ids": [1, 2],
        "filter": {"x": True},
        "X-Key": "k",
        "session": "s",
    }
    result = call(served(api), "list_pets", arguments)
    assert api.last == "GET /api/pets?limit=2&kinds=a%20b&kinds=c&ids=1,2&filter%5Bx%5D=true"
    assert api.requests[-1].headers["x-key"] == "k"
    assert api.requests[-1].headers["cookie"] == "session=s"
    assert result["structuredContent"] == {"result": [1]}


def test_the_same_name_in_path_and_body_is_distinguished() -> None:
    api = Api()
    server = served(api)
    assert set(tools_of(server)["putPet"]["inputSchema"]["properties"]) == {"id__path", "id"}
    call(server, "putPet", {"id__path": "7", "id": 5})
    assert api.last == "PUT /api/pets/7"
    assert json.loads(api.requests[-1].content) == {"id": 5}
    assert call(server, "putPet", {"id": 5})["content"][0]["text"] == "id__path: required, missing"


@pytest.mark.parametrize(
    ("value", "path"), [("a/b", "a%2Fb"), ("a?b#c", "a%3Fb%23c"), ("%2e%2e", "%252e%252e")]
)
def test_a_value_stays_in_its_segment_of_the_path(value: str, path: str) -> None:
    api = Api()
    call(served(api), "delPet", {"id": value})
    assert api.last == f"DELETE /api/pets/{path}"


@pytest.mark.parametrize("value", ["..", ".", ""])
def test_a_value_that_would_change_the_path_is_refused(value: str) -> None:
    api = Api()
    assert call(served(api), "delPet", {"id": value})["isError"] is True
    assert api.requests == []


def test_bodies_are_written_by_their_type() -> None:
    api = Api()
    server = served(api)
    call(server, "form", {"a": "x y", "b": True})
    assert api.requests[-1].content == b"a=x+y&b=true"
    call(server, "texts", {"body": ["é"]})
    assert json.loads(api.requests[-1].content) == ["é"]
    assert api.requests[-1].headers["content-type"] == "application/json"
    call(server, "addPet", {"name": None, "children": [{"name": "a"}]})
    assert json.loads(api.requests[-1].content) == {"name": None, "children": [{"name": "a"}]}


def test_invalid_arguments_send_nothing() -> None:
    api = Api()
    result = call(served(api), "addPet", {"name": "a", "age": 0})
    assert result["content"][0]["text"] == "age: expected a number > 0, got 0"
    assert call(served(api), "list_pets", {})["content"][0]["text"] == '$["X-Key"]: required, missing'
    assert api.requests == []


@pytest.mark.parametrize(
    ("answer", "text", "structured"),
    [
        ({"json": {"a": 1}}, '{"a":1}', {"a": 1}),
        ({"json": 5}, '{"result":5}', {"result": 5}),
        ({"text": "plain"}, "plain", None),
        ({"content": b""}, "", None),
        ({"content": b"{broken", "headers": {"content-type": "application/json"}}, "{broken", None),
    ],
)
def test_the_response_is_the_result(answer: dict[str, Any], text: str, structured: Any) -> None:
    result = call(served(Api(**answer)), "delPet", {"id": "1"})
    assert [block["text"] for block in result["content"]] == [text]
    assert result.get("structuredContent") == structured


def test_a_failure_is_an_error_with_status_and_text() -> None:
    result = call(served(Api(404, text="no such pet")), "delPet", {"id": "1"})
    assert result["isError"] is True
    assert result["content"][0]["text"] == "HTTP error 404: Not Found - no such pet"


def test_a_request_that_cannot_be_sent_is_an_error() -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    server = Server("pets")
    client = httpx.AsyncClient(transport=httpx.MockTransport(broken), base_url="http://pets.example")
    add_operations(server, PETS, client)
    result = call(server, "delPet", {"id": "1"})
    assert result["content"][0]["text"] == "DELETE /pets/{id}: refused"


def test_a_client_needs_no_more_than_what_fastmcp_calls() -> None:
    api = Api()

    class Signing:
        """A client of a program's own, around one that it does not offer."""

        base_url = "http://pets.example/api"

        def __init__(self) -> None:
            self.headers = {"x-signed": "yes"}

        async def send(self, request: httpx.Request) -> httpx.Response:
            return await api.client().send(request)

    class Building(Signing):
        def build_request(self, method: str, url: str, **options: Any) -> httpx.Request:
            options["headers"]["x-built"] = url
            return httpx.Request(method, url, **options)

    for client in (Building(), Signing()):
        server = Server("pets")
        add_operations(server, PETS, client)
        assert not call(server, "delPet", {"id": "a b"})["isError"]
        assert api.last == "DELETE /api/pets/a%20b"
    assert [each.headers.get("x-built") for each in api.requests] == [
        "http://pets.example/api/pets/a%20b",
        None,
    ]
    assert api.requests[1].headers["x-signed"] == "yes"


def test_route_maps_decide_what_an_operation_becomes() -> None:
    api = Api(json={"name": "Tom"})
    maps = [
        RouteMap(methods=["GET"], pattern=r".*\{.*\}.*", mcp_type=MCPType.RESOURCE_TEMPLATE),
        RouteMap(methods=["get"], tags={"pet"}, mcp_type=MCPType.RESOURCE, mcp_tags={"more"}),
        RouteMap(pattern="^/(form|texts)$", mcp_type=MCPType.EXCLUDE),
    ]
    mcp = FastMCP.from_openapi(PETS, api.client(), route_maps=maps, mcp_names={"addPet": "add a pet"})

    async def run() -> None:
        async with Client(mcp) as client:
            tools = (await client.request("tools/list", {}))["tools"]
            assert [tool["name"] for tool in tools] == ["add_a_pet", "putPet", "delPet"]
            (resource,) = (await client.request("resources/list", {}))["resources"]
            assert resource["uri"] == "resource://list_pets"
            assert resource["_meta"] == {"fastmcp": {"tags": ["more", "pet"]}}
            (template,) = (await client.request("resources/templates/list", {}))["resourceTemplates"]
            assert template["uriTemplate"] == "resource://One_pet/{id}"
            read = await client.request("resources/read", {"uri": "resource://One_pet/a%20b"})
            assert json.loads(read["contents"][0]["text"]) == {"name": "Tom"}
            assert read["contents"][0]["mimeType"] == "application/json"

    asyncio.run(run())
    assert api.last == "GET /api/pets/a%20b"


def test_functions_decide_and_adjust() -> None:
    def decide(operation: Any, kind: MCPType) -> MCPType | None:
        return MCPType.EXCLUDE if operation.path == "/form" else None

    def adjust(operation: Any, tool: Any) -> None:
        tool.description = f"{operation.method}!"

    tools = tools_of(served(Api(), route_of_operation=decide, adjust=adjust))
    assert "form" not in tools
    assert tools["texts"]["description"] == "POST!"


def test_headers_of_a_call_are_sent_too() -> None:
    api = Api()
    call(served(api, headers_of_call=lambda: {"Authorization": "Bearer t"}), "delPet", {"id": "1"})
    assert api.requests[-1].headers["authorization"] == "Bearer t"


def changed(**members: Any) -> dict[str, Any]:
    return {**copy.deepcopy(PETS), **members}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "openapi: expected a dict, got list"),
        ({"swagger": "2.0"}, "openapi: expected a document of OpenAPI 3.0 or 3.1, got Swagger 2.0"),
        ({"openapi": 3}, "openapi: expected a document of OpenAPI 3.0 or 3.1, got 3"),
        ({"openapi": "3.1.0"}, "openapi: info: Field required"),
        (
            changed(paths={"/a": {"get": {"parameters": [{"$ref": "#/none"}], "responses": {}}}}),
            "there is no #/none",
        ),
        (
            changed(paths={"/a": {"get": {"parameters": [{"$ref": "other.json#/a"}], "responses": {}}}}),
            "'other.json#/a' is in another document",
        ),
    ],
)
def test_a_document_that_cannot_be_used_is_refused(document: Any, problem: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        operations_of(document)
    assert problem in str(caught.value)


def test_operations_of_one_name_are_numbered() -> None:
    paths = {
        path: {"get": {"operationId": "get", "responses": {"200": {"description": ""}}}}
        for path in ("/a", "/b")
    }
    server = Server("a")
    add_operations(server, changed(paths=paths), Api().client())
    assert list(tools_of(server)) == ["get", "get_2"]


def test_a_fastapi_application_is_called_in_this_process() -> None:
    fastapi = pytest.importorskip("fastapi", reason="the application's framework")
    app = fastapi.FastAPI(title="Sums")

    @app.get("/sum/{a}")
    def add(a: int, b: int = 1) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    mcp = FastMCP.from_fastapi(app)
    assert mcp.name == "Sums"
    tools = tools_of(mcp)
    (name,) = tools
    assert tools[name]["description"] == "Add two numbers."
    result = call(mcp, name, {"a": 2})
    assert result["structuredContent"] == {"sum": 3}
    assert call(mcp, name, {"a": "x"})["isError"] is True


def test_without_a_client_requests_go_to_the_document_s_first_server() -> None:
    assert FastMCP.from_openapi(PETS).name == "OpenAPI Server"
    with pytest.raises(DefinitionError, match="no server of the document has an http URL"):
        FastMCP.from_openapi(changed(servers=[{"url": "/relative"}]))


def test_a_description_stays_as_it_is_beside_its_schemas() -> None:
    from fastrpc.compat.fastmcp import format_description_with_responses

    assert format_description_with_responses("Sum", {"200": {}}, [], None) == "Sum"


@pytest.mark.parametrize(("release", "first"), [((3, 0), True), ((2, 14), False)])
def test_a_files_own_tools_are_listed_before_the_operations_since_fastmcp_3(
    release: tuple[int, int], first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastrpc.compat.dialect.installed_release", lambda package: release)
    mcp = FastMCP.from_openapi(PETS, Api().client())
    operations = list(tools_of(mcp))
    mcp.tool(lambda: "a", name="own")
    mcp.tool(lambda: "b", name="second")
    own = ["own", "second"]
    assert list(tools_of(mcp)) == ([*own, *operations] if first else [*operations, *own])
