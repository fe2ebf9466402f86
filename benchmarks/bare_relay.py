"""Passes a line at a time from standard input on to a kept socket as the body of a POST to /rpc, and the body
of the answer back: the least that a process between a client and an engine can do, for `contracts_bridge`.

    python benchmarks/bare_relay.py PORT

It reads nothing of what it passes on but the lengths, and keeps no promise.
"""

from __future__ import annotations

import asyncio
import os
import sys

import uvloop

HEAD = (
    b"POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
)


class Upstream(asyncio.Protocol):
    came = b""

    def data_received(self, data: bytes) -> None:
        self.came += data
        head, blank, body = self.came.partition(b"\r\n\r\n")
        at = head.lower().find(b"content-length:")
        if blank and len(body) == int(head[at + 15 :].partition(b"\r")[0]):
            self.came = b""
            os.write(1, body + b"\n")


async def main() -> None:
    loop = asyncio.get_running_loop()
    upstream, _ = await loop.create_connection(Upstream, "127.0.0.1", int(sys.argv[1]))
    ended = loop.create_future()

    def take() -> None:
        line = os.read(0, 65_536)
        if line:
            upstream.write(HEAD % len(line) + line)
        else:
            loop.remove_reader(0)
            ended.set_result(None)

    loop.add_reader(0, take)
    await ended


if __name__ == "__main__":
    uvloop.run(main())
