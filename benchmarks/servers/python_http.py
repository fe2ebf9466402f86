"""The floor over HTTP, `python_http.py PORT`: echo alone, with uvloop, httptools and `json`, no framework.

It looks at no header, knows no error and checks nothing: no token, no Host, not whether head and body agree.
What a server that can be left on a network does more is not in its figures.
"""

import asyncio
import json
import sys

import httptools
import uvloop

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""

    def data_received(self, data):
        self.parser.feed_data(data)

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        message = json.loads(self.body)
        self.body = b""
        text = message["params"]["arguments"]["text"]
        result = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, separators=(",", ":"))
        self.transport.write(HEAD % (len(answer), answer.encode()))


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
