"""echo.py over HTTP with a token, `http_echo.py PORT TOKEN`: what W11 drives.

With `--asgi` as an ASGI application in a uvicorn of its own, as a user mounts it beside other things: the way
without the short cut for likely requests. With `--access-log FILE` a line for each request is written there.
With `--planted N` every call wastes N µs: for the guard's test.
"""

import sys

if "--planted" in sys.argv:
    from planted import app
else:
    from echo import app

if __name__ == "__main__":
    port, token = int(sys.argv[1]), sys.argv[2]
    if "--asgi" in sys.argv:
        import uvicorn

        fastest = {"loop": "uvloop", "http": "httptools", "access_log": False, "log_level": "warning"}
        uvicorn.run(app.asgi(token=token), host="127.0.0.1", port=port, **fastest)
    else:
        log = sys.argv[sys.argv.index("--access-log") + 1] if "--access-log" in sys.argv else None
        if log is not None:
            open(log, "w").close()  # not the last run's too
        app.run(http=f"127.0.0.1:{port}", token=token, access_log=log)
