"""What to write instead of names of the originals that fastrpc does not have: by module, and by name.

Read by `fastrpc.swap.modules` for `fastrpc swap` and for the import hook; what a module of names says
itself (`fastrpc.compat.fastmcp`, `fastrpc.compat.mcp`) comes first. tests/unit/test_compat_names.py holds
it against the names of released originals. Pure data.
"""

from __future__ import annotations

_AUTH = "over HTTP, tokens and authorization servers are options of the server (docs/http.md)"
_CLIENT_PART = "it is an inner part of the client; use the methods of Client"
_CLIENT_AUTH = 'give the client auth="oauth" or a token (docs/client.md)'
_EXPERIMENT = "it is an experiment of FastMCP"
_HTTP = "serve over HTTP with mcp.run(http=…), or app.asgi() in a framework (docs/http.md)"
_INNER = "it is an inner part of the original; a server has no need of it"
_NO_APPS = "it is an inner part of user interfaces; use FastMCPApp, or app= of a tool"
_NO_SKILLS = "skills are an extension of the protocol that fastrpc does not have"
_NO_TASKS = "tasks are an extension of the protocol that fastrpc does not have; report progress"
_OPENAPI = "write a tool for each call that a model needs"
_PROVIDERS = "use @mcp.resources(scheme), mcp.mount(other) or Server.proxy(command)"
_TRANSPORT = "give Client the command, the file, the URL or the dict of servers"

BY_MODULE = {
    "fastmcp.apps": _NO_APPS,
    "fastmcp.client": _CLIENT_PART,
    "fastmcp.client.auth": _CLIENT_AUTH,
    "fastmcp.client.oauth_callback": _CLIENT_AUTH,
    "fastmcp.client.sampling": "give Client(sampling_handler=…) a function that calls the model",
    "fastmcp.client.tasks": _NO_TASKS,
    "fastmcp.client.transports": _TRANSPORT,
    "fastmcp.decorators": _INNER,
    "fastmcp.experimental": _EXPERIMENT,
    "fastmcp.mcp_config": _TRANSPORT,
    "fastmcp.server.auth": _AUTH,
    "fastmcp.prompts.base": _INNER,
    "fastmcp.prompts.function_prompt": _INNER,
    "fastmcp.resources.base": _INNER,
    "fastmcp.resources.function_resource": _INNER,
    "fastmcp.resources.template": _INNER,
    "fastmcp.server.caching": _INNER,
    "fastmcp.server.completions": _INNER,
    "fastmcp.server.context": _INNER,
    "fastmcp.server.dependencies": _INNER,
    "fastmcp.server.elicitation": _INNER,
    "fastmcp.server.event_store": _HTTP,
    "fastmcp.server.extensions": "there are no extensions",
    "fastmcp.server.http": _HTTP,
    "fastmcp.server.low_level": _INNER,
    "fastmcp.server.middleware": "write hooks: @mcp.before, @mcp.after, @mcp.on_error",
    "fastmcp.server.mixins": _INNER,
    "fastmcp.server.openapi": _OPENAPI,
    "fastmcp.server.providers": _PROVIDERS,
    "fastmcp.server.providers.openapi": _OPENAPI,
    "fastmcp.server.providers.skills": _NO_SKILLS,
    "fastmcp.server.proxy": "use fastrpc.Server.proxy(command)",
    "fastmcp.server.sampling": "call ctx.sample without tools",
    "fastmcp.server.session_scoped_event_store": _HTTP,
    "fastmcp.server.sessions": "keep it by ctx.set_state, which lasts for the client's connection",
    "fastmcp.server.tasks": _NO_TASKS,
    "fastmcp.server.telemetry": _INNER,
    "fastmcp.settings": _INNER,
    "fastmcp.server.transforms": "name things where they are added: @mcp.tool(name=…)",
    "fastmcp.skills": _NO_SKILLS,
    "fastmcp.telemetry": _INNER,
    "fastmcp.tools.base": _INNER,
    "fastmcp.tools.function_parsing": _INNER,
    "fastmcp.tools.function_tool": _INNER,
    "fastmcp.tools.tool": _INNER,
    "fastmcp.tools.tool_transform": "register a function that calls the other one",
    "fastmcp.utilities": _INNER,
    "fastmcp.utilities.openapi": _OPENAPI,
    "mcp.client": _CLIENT_PART,
    "mcp.client.websocket": "connect over Streamable HTTP or stdio",
    "mcp.server.apps": _NO_APPS,
    "mcp.server.caching": _INNER,
    "mcp.server.connection": _INNER,
    "mcp.server.context": _INNER,
    "mcp.server.elicitation": _INNER,
    "mcp.server.experimental": _NO_TASKS,
    "mcp.server.extension": "there are no extensions",
    "mcp.server.fastmcp.server": _INNER,
    "mcp.server.fastmcp.utilities": _INNER,
    "mcp.server.lowlevel.experimental": _NO_TASKS,
    "mcp.server.lowlevel.func_inspection": _INNER,
    "mcp.server.lowlevel.server": _INNER,
    "mcp.server.mcpserver.resolve": _INNER,
    "mcp.server.mcpserver.server": _INNER,
    "mcp.server.mcpserver.utilities": _INNER,
    "mcp.server.request_state": _INNER,
    "mcp.server.runner": _INNER,
    "mcp.server.sse": _HTTP,
    "mcp.server.streamable_http": _HTTP,
    "mcp.server.streamable_http_manager": _HTTP,
    "mcp.server.subscriptions": _INNER,
    "mcp.server.transport_security": "Host and Origin are checked by itself (docs/http.md)",
    "mcp.server.validation": _INNER,
    "mcp.server.websocket": _HTTP,
}
"""Of a module and all below it; the longest name counts."""

_COMPONENT = "give add_tool, add_prompt the function, and add_resource the address and the content"
_CONTEXT = "take a parameter ctx: Context"
_ELICIT = "await ctx.elicit(message, schema) in the tool"
_ERROR = "raise ToolError"

BY_NAME = {
    **dict.fromkeys(("FunctionPrompt", "FunctionResourceTemplate", "HttpResource"), _COMPONENT),
    **dict.fromkeys(("PromptManager", "ResourceManager", "ToolManager"), "use the methods of the server"),
    **dict.fromkeys(
        ("CallArgument", "CycleError", "Shared", "get_session"),
        f"{_CONTEXT}; the lifespan's value holds what else a tool needs",
    ),
    **dict.fromkeys(("ProgressLike", "InMemoryProgress"), "await ctx.report_progress(done, total)"),
    **dict.fromkeys(("CurrentDocket", "CurrentWorker"), _NO_TASKS),
    **dict.fromkeys(
        ("authenticated_principal",),
        "read ctx.inner.principal",
    ),
    **dict.fromkeys(
        (
            "ClientError",
            *("UnexpectedResourceError", "UnexpectedToolError"),
            *("to_mcp_error", "FastMCPDeprecationWarning"),
        ),
        _ERROR,
    ),
    "ClientGroup": "give Client the dict of servers",
    "MountedServer": "use mcp.mount(other)",
    **dict.fromkeys(
        ("add_resource_prefix", "has_resource_prefix", "remove_resource_prefix"),
        "addresses of resources have no prefix",
    ),
    "default_lifespan": "give lifespan= an asynccontextmanager",
    **dict.fromkeys(("Settings", "StateValue"), "settings are fastrpc.Server's: mcp.page_size …"),
    **dict.fromkeys(
        ("AcceptedUrlElicitation", "elicit_url", "elicit_with_validation"),
        _ELICIT,
    ),
    "create_client_server_memory_streams": "use fastrpc.testing.Client(server)",
    **dict.fromkeys(
        (
            *("InitializationState", "InputRequiredPromptResult", "InputRequiredResourceResult"),
            "InputRequiredToolResult",
        ),
        _INNER,
    ),
    **dict.fromkeys(
        (*("AESGCMRequestStateCodec", "RequestStateBoundary", "RequestStateCodec"),),
        "what a client carries is signed with FASTRPC_SECRET",
    ),
}
"""By name, in any module that is not in the other table."""

INNER = (_CLIENT_PART, _EXPERIMENT, _INNER)
"""The alternatives of names that servers and clients do not use."""

OPTIONS = {
    "sampling_handler": "call the model in the tool where the client cannot",
    "sampling_handler_behavior": "call the model in the tool where the client cannot",
}
"""Options of a server, beside those that `fastrpc.compat.server` names itself."""

MEMBERS = {
    "add_extension": "there are no extensions",
    "docket": _NO_TASKS,
    "generate_name": "give the server a name",
    "get_app_tool": _NO_APPS,
    "get_tasks": _NO_TASKS,
    "get_tool_by_hash": _NO_APPS,
    "icons": "keep what was given to the server",
    "required_extensions": "there are no extensions",
    "title": "keep what was given to the server",
    "website_url": "keep what was given to the server",
    "wrap_transform": "name things where they are added: @mcp.tool(name=…)",
}
"""Members of a server, beside those that `fastrpc.compat.server` names itself."""


def alternative(module: str, name: str) -> str:
    """Return what to write instead of a name, "" if nothing is known."""
    if name in BY_NAME:
        return BY_NAME[name]
    place = module
    while place:
        if place in BY_MODULE:
            return BY_MODULE[place]
        place = place.rpartition(".")[0]
    return ""
