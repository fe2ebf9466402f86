"""Changes at run time: serve with `fastrpc serve examples/changes.py`.

Tools come and go, a resource changes: the clients that may know are told, in the way of their version.
"""

import threading
import time

from fastrpc import Server

app = Server("changes", version="1.0")
readings: list[int] = []


@app.resource("sensor://readings", mime_type="text/plain")
def all_readings() -> str:
    """All readings so far, one a line."""
    return "\n".join(map(str, readings))


@app.tool(effect="write")
def learn(name: str, answer: str) -> str:
    """Add a tool that gives an answer: who may know hears of it by `notifications/tools/list_changed`."""

    def reply() -> str:
        return answer

    app.add_tool(reply, name=name, description=f"Say {answer}.")
    return f"{name} is there now"


@app.tool(effect="write")
def forget(name: str) -> str:
    """Take a tool away again."""
    app.remove_tool(name)
    return f"{name} is gone"


@app.tool(effect="write")
def measure(times: int = 3, pause: float = 0.05) -> str:
    """Take readings in the background: each is told to those who subscribed to `sensor://readings`."""

    def work() -> None:
        for _ in range(times):
            time.sleep(pause)
            readings.append(len(readings))
            app.resource_updated("sensor://readings")  # from whatever thread

    threading.Thread(target=work, daemon=True).start()
    return "measuring"


if __name__ == "__main__":
    app.run()
