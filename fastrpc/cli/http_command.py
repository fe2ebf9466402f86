"""Commands of toolsets that serve over HTTP, with the options of `fastrpc serve --http` and their help.

The options, their checks and their effects are those of `serve` and `_serve_http`; a command adds its own
flags and provides the server. Options are left out that do not fit a server with state, or with more than
MCP: several workers, a guard (which only applies to MCP), and another name. Only such commands import this
module.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastrpc.cli import configuration, serve
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fastrpc.server import Server

LEFT_OUT = ("--dashboard", "--guard", "--name", "--workers")


@dataclass(frozen=True)
class HttpCommand:
    """``fastrpc COMMAND``, which serves over HTTP at `address`, or at that of ``--http``.

    `description` and `examples` are parts of its help, the latter lines that begin with two spaces; `flags`
    are its own options, with their help.
    """

    command: str
    description: str
    examples: str
    address: str
    flags: Mapping[str, str]

    def help(self) -> str:
        flags = "".join(f"  {name:<21} {text}\n" for name, text in self.flags.items())
        return (
            f"usage: fastrpc {self.command} [OPTION…]\n\n{self.description}\n\n"
            "options:\n"
            "  --cwd DIR             change to the folder DIR first: files are relative to it\n"
            f"{flags}{serve.CALLS_HELP}{serve.STATS_HELP}"
            "  -h, --help            show this\n\n"
            f"{serve.HTTP_HELP}{serve.TLS_HELP}\nexamples:\n{self.examples}"
        )

    def run(self, arguments: list[str], make: Callable[[list[str]], Server], *, max_body: int) -> int:
        """Serve the server that `make` returns for the flags that are given, until a signal arrives. A body
        may have `max_body` bytes. Raises UsageError."""
        if "--help" in arguments or "-h" in arguments:
            from fastrpc.command_line import write_help

            write_help(self.help())
            return 0
        own = dict.fromkeys(self.flags, "")
        options, rest = serve.split_arguments(arguments, self.command, own, flags=own, without=LEFT_OUT)
        if rest:
            raise UsageError(f"one argument too many: {rest[0]!r} (see 'fastrpc {self.command} --help')")
        options.setdefault("--http", self.address)
        serve.is_for_http(options)
        serve.enter(options.get("--cwd"))
        settings = configuration(serve.setting_texts(options))
        serve.apply(settings)
        if settings["FASTRPC_WORKERS"] > 1:
            raise UsageError(f"{self.command}: one process serves: leave FASTRPC_WORKERS out")
        given = [name for name in self.flags if name in options]

        def made() -> Server:
            server = make(given)
            if settings["FASTRPC_MAX_IN_FLIGHT"] is not None:
                server.max_in_flight = settings["FASTRPC_MAX_IN_FLIGHT"]
            return server

        from fastrpc.cli import _serve_http

        _serve_http.serve(options, settings, made, max_body=max_body)
        return 0
