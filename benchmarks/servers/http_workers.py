"""echo.py over HTTP by several processes, `http_workers.py PORT TOKEN WORKERS`, with a tool that computes."""

import sys
import time

from echo import app


@app.tool(run="inline")
def compute(ms: float) -> float:
    """Use the processor for so long, by the thread's clock: other programs do not shorten it."""
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        pass
    return ms


if __name__ == "__main__":
    port, token, workers = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    app.run(http=f"127.0.0.1:{port}", token=token, workers=workers)
