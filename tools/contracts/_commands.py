"""What this toolset adds to the command line: ``fastrpc contracts COMMAND``."""

COMMANDS = {
    "install": ("fetch solc, forge and anvil from npm, checked against a lock file", "_install:main"),
    "engine": ("serve the engine over HTTP, for other programs", "_engine_command:main"),
}
