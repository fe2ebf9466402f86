"""echo.py behind fastrpc's proxy, `proxy.py`, and without it, `proxy.py --direct`: what W14 drives.

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
    if "--direct" not in sys.argv:
        app = Server.proxy([sys.executable, os.path.join(HERE, "echo.py")])
    app.run()
