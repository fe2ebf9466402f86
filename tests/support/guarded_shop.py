"""A server of some tools, and a policy for it."""

from __future__ import annotations

from fastrpc import Server

POLICY = """\
[expose]
tools = ["search", "order", "docs_*"]
prompts = ["greet"]

[classes.agent]
tools = ["search", "order"]
rate = "60/minute"
tool_budgets = { "order" = ["10 calls/day"] }

[[rules]]
id = "small-orders"
tools = ["order"]
when = "args.count > 10"
then = "deny"

[[rules]]
id = "no-guests"
when = "caller.class == 'guest'"
then = "deny"
reason = "guests look only"

[risk]
"docs_*" = "low"
"""


def shop_server() -> Server:
    app = Server("shop")

    @app.tool(effect="read")
    def search(text: str) -> str:
        return text

    @app.tool(effect="exec")
    def order(item: str, count: int = 1) -> str:
        return item * count

    @app.tool(effect="write")
    def docs_add(text: str) -> str:
        return text

    @app.tool(effect="exec")
    def wipe(place: str) -> str:
        return place

    @app.prompt
    def greet() -> str:
        return "hello"

    return app
