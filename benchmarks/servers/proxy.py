"""echo.py behind fastrpc's proxy, `proxy.py`, and without it, `proxy.py --direct`: what W14 drives.

With `PORT TOKEN` after these they serve over HTTP; the server behind the proxy is always a child process.
`proxy.py --guard FILE` is the proxy behind the policy of a file, over stdio.
Both have a session of their own, as the servers have that the proxy or an SDK's client starts: where the
kernel groups processes by session (Linux, autogroup), two that share a core take turns in another way.
"""

import os
import sys

from echo import app

from fastrpc import Server

HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    if os.getsid(0) != os.getpid():
        os.setsid()
    given = sys.argv[1:]
    if given[:1] == ["--direct"]:
        given = given[1:]
    else:
        app = Server.proxy([sys.executable, os.path.join(HERE, "echo.py")])
    if given[:1] == ["--guard"]:
        from fastrpc.guard import GuardedServer

        GuardedServer(app, given[1]).run()
    elif given:
        app.run(http=f"127.0.0.1:{int(given[0])}", token=given[1])
    else:
        app.run()
