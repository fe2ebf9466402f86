"""The part of the demo that reads a page: one that is empty until its script has run, served by this
module."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tides</title></head><body>
<nav><a href="/">Home</a> <a href="/about">About</a></nav><main id="app"></main><script>
const tides = [["Monday", "06:12", "4.1 m"], ["Tuesday", "07:03", "4.4 m"]];
document.getElementById("app").innerHTML = "<h1>Tides of the week</h1>"
  + "<p>High water, as <b>rendered by a script</b>: <a href='/notes'>how it is measured</a>.</p>"
  + "<table><tr><th>Day</th><th>Time</th><th>Height</th></tr>"
  + tides.map(row => "<tr>" + row.map(cell => `<td>${cell}</td>`).join("") + "</tr>").join("") + "</table>";
</script></body></html>"""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGE.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:
        pass


def read_a_page(conversation: Any) -> None:
    conversation.title("A page that is empty until its script has run, as Markdown")
    with HTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/tides"
        answer = conversation.call("ReadDocs", {"url": url})
        server.shutdown()
    if answer.meta.get("fastrpc/facts", {}).get("via") == "browser":
        conversation.check(
            "| Tuesday | 07:03 | 4.4 m |" in answer.text, "ReadDocs: the table is not in the result"
        )
    else:
        conversation.remark("no browser here (install chromium): the page came without its script")
