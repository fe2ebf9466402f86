"""W13: fastrpc's client, in an event loop, with `--sync` without one; over stdio, HTTP or in memory."""

from __future__ import annotations

import sys
from typing import Any

import driving

from fastrpc import Client
from fastrpc.client import CallResult


def text_of(result: CallResult) -> str:
    if result.is_error:
        raise driving.Void(f"the tool failed: {result.text:.200}")
    return result.text


def options_of(load: driving.Load) -> dict[str, Any]:
    return {"version": driving.VERSION, **({"token": load.token} if load.url else {})}


async def drive(load: driving.Load) -> dict[str, Any]:
    async with Client(load.app or load.url or load.command, **options_of(load)) as client:
        driving.hold_to_version(client.version)
        return await driving.drive(load, client.call_tool, text_of)


def drive_sync(load: driving.Load) -> dict[str, Any]:
    with Client.sync(load.app or load.url or load.command, **options_of(load)) as client:
        driving.hold_to_version(client.version)
        return driving.drive_sync(load, client.call_tool, text_of)


if __name__ == "__main__":
    sys.exit(driving.main(drive, drive_sync))
