"""The tool `echo` as users write tools: `python shapes.py SHAPE`, ``plain`` or one of those below.

`python shapes.py SHAPE PORT TOKEN` serves it over HTTP.
"""

import sys

from fastrpc import Context, Server


def app_of(shape: str) -> Server:
    """Return a server whose `echo` is of this shape."""
    app = Server("bench")
    if shape == "context":

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
    else:

        @app.tool
        def echo(text: str) -> str:
            """Return the text."""
            return text

        if shape == "hook":

            @app.before
            def nothing(call: object) -> None:
                """See each call, and leave it as it is."""

    return app


if __name__ == "__main__":
    app = app_of(sys.argv[1])
    if len(sys.argv) > 2:
        app.run(http=f"127.0.0.1:{sys.argv[2]}", token=sys.argv[3])
    else:
        app.run()
