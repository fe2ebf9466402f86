"""The tool `echo` as users write tools, and what else they serve: `python shapes.py SHAPE`.

SHAPE is ``plain`` or one of those below; of any other name, the plain server, which is asked for other things
than right calls then (arguments that do not fit, a tool that there is not, `ping`).

`python shapes.py SHAPE PORT TOKEN` serves it over HTTP.
"""

import sys
from collections.abc import Callable

from fastrpc import Context, Server, ToolError

NOTES = 16  # resources, of which a client reads any


def app_of(shape: str) -> Server:
    """Return a server whose `echo` is of this shape."""
    app = Server("bench")
    if shape in RETURNING:
        RETURNING[shape](app)
    elif shape == "context":

        @app.tool
        def echo(text: str, ctx: Context) -> str:
            """Return the text."""
            return text
    elif shape == "progress":  # that nobody has asked for

        @app.tool
        def echo(text: str, ctx: Context) -> str:
            """Return the text."""
            ctx.progress(1, 1)
            return text
    elif shape == "coroutine":

        @app.tool
        async def echo(text: str) -> str:
            """Return the text."""
            return text
    elif shape == "waiting":
        import asyncio

        @app.tool
        async def echo(text: str) -> str:
            """Return the text."""
            await asyncio.sleep(0)
            return text
    elif shape == "keywords":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}

        @app.tool(input_schema={"type": "object"}, json_schema_extra=schema)
        def echo(**arguments: str) -> str:
            """Return the text."""
            return arguments["text"]
    elif shape == "thread":

        @app.tool(run="thread")
        def echo(text: str) -> str:
            """Return the text."""
            return text
    else:

        @app.tool
        def echo(text: str) -> str:
            """Return the text."""
            return text

        if shape in AROUND:
            AROUND[shape](app)
    return app


# --- what echo returns, or raises ---------------------------------------------------------------------------


def returning_dict(app: Server) -> None:
    @app.tool
    def echo(text: str) -> dict[str, str]:
        """Return the text as a record."""
        return {"text": text}


def returning_model(app: Server) -> None:
    from pydantic import BaseModel

    class Echo(BaseModel):
        text: str

    @app.tool
    def echo(text: str) -> Echo:
        """Return the text as a record."""
        return Echo(text=text)


def returning_texts(app: Server) -> None:
    from fastrpc import Text

    @app.tool
    def echo(text: str) -> list[Text]:
        """Return the text twice."""
        return [Text(text), Text(text)]


def raising_tool_error(app: Server) -> None:
    @app.tool
    def echo(text: str) -> str:
        """Refuse the text."""
        raise ToolError(text)


def raising_value_error(app: Server) -> None:
    @app.tool
    def echo(text: str) -> str:
        """Fail with the text."""
        raise ValueError(text)


RETURNING = {
    "dict": returning_dict,
    "model": returning_model,
    "texts": returning_texts,
    "tool-error": raising_tool_error,
    "value-error": raising_value_error,
}


# --- what is around it, or beside it ------------------------------------------------------------------------


def hook(app: Server) -> None:
    @app.before
    def nothing(call: object) -> None:
        """See each call, and leave it as it is."""


def guard(app: Server) -> None:
    @app.guard
    def everybody(call: object) -> None:
        """Allow each call."""


def observer(app: Server) -> None:
    @app.observe
    def nothing(records: object) -> None:
        """Be handed the records of calls."""


def resources(app: Server) -> None:
    def reader(number: int) -> Callable[[], str]:
        return lambda: f"This is note {number}"

    for number in range(NOTES):
        app.add_resource(f"bench://notes/{number}", reader(number))


def prompt(app: Server) -> None:
    @app.prompt(name="echo")
    def asking(text: str) -> str:
        """Ask for the text."""
        return text


AROUND = {"hook": hook, "guard": guard, "observe": observer, "resource": resources, "prompt": prompt}


if __name__ == "__main__":
    app = app_of(sys.argv[1])
    if len(sys.argv) > 2:
        app.run(http=f"127.0.0.1:{sys.argv[2]}", token=sys.argv[3])
    else:
        app.run()
