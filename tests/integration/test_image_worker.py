"""The processes that decode images: their limits, how many there are, and that none outlives its use."""

from __future__ import annotations

import asyncio
import base64
import gc
import io
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastrpc.tools.agent._image import pool as image_pool
from fastrpc.tools.agent.read_image import read_image
from PIL import Image
from support import chromium, images
from support.child_processes import gone, reaper_below, reapers
from support.image_calls import run
from support.protocol import SESSION_VERSIONS, STATELESS
from support.stdio import STATELESS_META, Process, serve
from support.waiting import SECONDS, eventually, until

from fastrpc import ToolError

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks into /proc")

SLOW_FRAMES = 3_000_000  # about seven seconds


@pytest.fixture(scope="session")
def slow_image(tmp_path_factory: Any) -> str:
    """A file of 45 MB that takes seconds to read."""
    path = tmp_path_factory.mktemp("images") / "slow.gif"
    path.write_bytes(images.slow_gif(SLOW_FRAMES))
    return str(path)


@pytest.fixture
def small_image(tmp_path: Any) -> str:
    path = tmp_path / "small.png"
    path.write_bytes(images.encoded(images.picture(), "PNG"))
    return str(path)


@pytest.fixture
def server(tmp_path: Any) -> Iterator[Process]:
    environment = {"FASTRPC_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    with serve(environment=environment, folder=str(tmp_path)) as process:
        process.initialize()
        yield process


def status(pid: int) -> dict[str, str]:
    """What the system tells of a process; empty if there is none, or only its remains."""
    try:
        with open(f"/proc/{pid}/status") as file:
            told = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return {}
    return {} if told.get("State", "Z").startswith(("Z", "X")) else told


def workers(ancestor: int) -> list[int]:
    """The decoding processes below a process."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if b"image_worker.main" not in file.read():
                    continue
        except OSError:
            continue
        above = int(name)
        while above > 1 and above != ancestor:
            above = int(status(above).get("PPid", "0"))
        if above == ancestor:
            found.append(int(name))
    return found


async def said(path: str) -> str:
    with pytest.raises(ToolError) as caught:
        await read_image(path)
    return str(caught.value)


async def said_within(image_seconds: int, path: str) -> str:
    """The same where an image may take so long. The others of a test may not: it is little on a busy
    machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FASTRPC_IMAGE_SECONDS", str(image_seconds))
        return await said(path)


def idle_worker() -> int:
    (worker,) = image_pool.pool().idle
    return int(worker.process.pid)


# --- over the wire ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [*SESSION_VERSIONS, STATELESS])
def test_an_image_goes_over_the_wire_in_every_version(version: str, tmp_path: Any, small_image: str) -> None:
    """ReadImage: a result is an image block with the right MIME type and a line with format, size in pixels,
    bytes and what was done.
    """
    with serve(environment={"FASTRPC_STATE_DIR": str(tmp_path)}, folder=str(tmp_path)) as server:
        asked: dict[str, Any] = {"name": "ReadImage", "arguments": {"file_path": small_image}}
        if version == STATELESS:
            asked["_meta"] = STATELESS_META
        else:
            server.initialize(version)
        result = server.request("tools/call", asked)["result"]
        image, text = result["content"]
        assert (image["type"], image["mimeType"]) == ("image", "image/png")
        with open(small_image, "rb") as file:
            assert base64.b64decode(image["data"], validate=True) == file.read()
        assert text["text"].startswith("PNG, 60 × 40 px, ")
        assert result["isError"] is False
        assert "structuredContent" not in result
        assert result["_meta"]["fastrpc/facts"]["width"] == 60


@pytest.mark.long
def test_the_server_survives_a_sweep_of_hostile_files(
    server: Process, tmp_path: Any, small_image: str
) -> None:
    """ReadImage: the server's memory stays bounded under a sweep of hostile files."""

    def highest() -> int:
        return int(status(server.pid)["VmHWM"].split()[0]) // 1024

    server.call("ReadImage", file_path=small_image)
    before = highest()
    path = str(tmp_path / "hostile.png")
    for name, data in {**images.hostile(), "a black one": images.png(9990, 9990, 6)}.items():
        with open(path, "wb") as file:
            file.write(data)
        result = server.call("ReadImage", file_path=path)
        assert result["isError"] is True, name
        assert result["content"][0]["text"].startswith(f"file_path: {path} "), name
    assert highest() - before < 16, "MiB"
    assert server.call("ReadImage", file_path=small_image)["isError"] is False
    assert server.stderr == ""


def test_the_server_itself_never_loads_pillow(tmp_path: Any, small_image: str) -> None:
    """ReadImage: the server itself never loads Pillow."""
    source = f"""
import asyncio, sys
from fastrpc import processes
from fastrpc.tools.agent.read_image import read_image
print([name for name in ("PIL", "asyncio", "socket", "fastrpc.processes") if name in sys.modules])
async def main():
    await read_image({small_image!r})
    await processes.close()
    print([name for name in sys.modules if name.startswith("PIL")])
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=SECONDS)
    loaded = done.stdout.splitlines()
    assert "PIL" not in loaded[0], done.stderr
    assert loaded[1] == "[]", done.stderr


# --- limits -----------------------------------------------------------------------------------------------


def test_a_worker_can_take_little_and_sees_nothing(small_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ReadImage: images are decoded in a process that can take little and sees nothing."""
    monkeypatch.setenv("PLANTED_SECRET", "s3cret")

    async def look() -> tuple[dict[str, str], set[str], bytes, str]:
        await read_image(small_image)
        pid = idle_worker()
        with open(f"/proc/{pid}/limits") as file:
            limits = {line[:25].strip(): line[25:].split()[0] for line in file}
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
        return limits, set(os.listdir(f"/proc/{pid}/fd")), environment, os.readlink(f"/proc/{pid}/cwd")

    limits, descriptors, environment, folder = run(look)
    assert limits["Max address space"] == str(1024**3)
    assert limits["Max file size"] == "0"
    assert limits["Max core file size"] == "0"
    assert 1 <= int(limits["Max cpu time"]) <= 12
    assert descriptors == {"0", "1", "2", "3"}
    assert limits["Max open files"] == "5"  # the file that is handed over is the fifth
    assert b"s3cret" not in environment
    assert folder == "/"


def test_too_much_memory_is_refused(tmp_path: Any, small_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ReadImage: an image that wants too much memory is refused."""
    (tmp_path / "large.png").write_bytes(images.png(9000, 9000, 2))
    monkeypatch.setenv("FASTRPC_IMAGE_MEMORY_BYTES", str(150 * 1024**2))

    async def look() -> str:
        message = await said(str(tmp_path / "large.png"))
        await read_image(small_image)
        return message

    expected = "takes more memory to decode than there may be (FASTRPC_IMAGE_MEMORY_BYTES)."
    assert run(look).endswith(f"large.png {expected}")


def test_too_much_processor_time_is_refused(slow_image: str, small_image: str) -> None:
    """ReadImage: an image that wants too much processor time is refused."""

    async def look() -> str:
        await read_image(small_image)
        pid = idle_worker()
        message = await said_within(1, slow_image)
        gone(pid)
        await read_image(small_image)
        assert idle_worker() != pid
        return message

    assert run(look).endswith("slow.gif takes longer to decode than it may (FASTRPC_IMAGE_SECONDS).")


def test_a_worker_that_is_stopped_is_not_waited_for(small_image: str) -> None:
    async def look() -> str:
        await read_image(small_image)
        pid = idle_worker()
        os.kill(pid, signal.SIGSTOP)
        message = await said_within(1, small_image)
        gone(pid)
        await read_image(small_image)
        return message

    assert "takes longer to decode than it may" in run(look)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_decoder_that_crashes_costs_only_its_call(
    slow_image: str, small_image: str, number: signal.Signals
) -> None:
    async def look() -> str:
        await read_image(small_image)
        pid = idle_worker()
        call = asyncio.ensure_future(said(slow_image))
        await until(lambda: image_pool.pool().idle == [])
        os.kill(pid, number)
        message = await call
        await read_image(small_image)
        return message

    assert run(look).endswith(f"makes the decoder fail ({number.name}); it is damaged or malicious.")


def test_an_idle_worker_that_dies_is_replaced(small_image: str) -> None:
    async def look() -> None:
        await read_image(small_image)
        os.kill(pid := idle_worker(), signal.SIGKILL)
        while status(pid):  # the loop does not hear of it
            time.sleep(0.001)
        await read_image(small_image)

    run(look)


def test_an_idle_worker_that_was_lost_with_its_reaper_is_replaced(small_image: str) -> None:
    async def look() -> None:
        await read_image(small_image)
        pid = idle_worker()
        for guardian in reapers():
            os.kill(reaper_below(guardian), signal.SIGKILL)
        worker = image_pool.pool().idle[-1]
        await asyncio.wait_for(worker.process.wait_gone(), SECONDS)
        assert (await read_image(small_image)).is_error is False
        assert idle_worker() != pid

    run(look)


@pytest.mark.parametrize(
    "answer",
    [
        "ANSWER.pack(1, 4_000_000_000, 0)",
        "ANSWER.pack(1, 25, 3_932_161) + b'PNG 60 40 1 1 PNG 60 40 1' + bytes(3_932_161)",
        "ANSWER.pack(1, 9, 1) + b'EXE 1 1 1'",
        "ANSWER.pack(1, 25, 1) + b'PNG 60 40 1 1 EXE 60 40 11'",
        "ANSWER.pack(1, 5, 1) + bytes(range(200, 206))",
        "b''",
    ],
)
def test_a_worker_that_lies_is_not_believed(
    answer: str, small_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying = (
        "import sys; sys.path += sys.argv[3:]; import image_worker as w; from image_worker import ANSWER\n"
    )
    lying += f"w.serve = lambda channel: (channel.recv(9), channel.sendall({answer}))\nw.main()"
    monkeypatch.setattr(image_pool, "BOOTSTRAP", lying)
    message = run(lambda: said(small_image))
    assert "makes the decoder fail" in message


def test_only_the_worker_may_call(small_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An abstract name is open to every user of the machine."""
    strangers = []
    listen = image_pool._listen

    def with_a_stranger() -> Any:
        listener, address, forget = listen()
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stranger.settimeout(SECONDS)
        stranger.connect(address)
        strangers.append(stranger)
        return listener, address, forget

    monkeypatch.setattr(image_pool, "_listen", with_a_stranger)
    result = run(lambda: read_image(small_image))
    assert "unchanged" in result.content[1]
    (stranger,) = strangers
    assert stranger.recv(100) == b""
    stranger.close()


# --- how many, and how long -------------------------------------------------------------------------------


def test_a_worker_is_kept_for_the_next_image_but_not_after_a_hostile_file(
    small_image: str, tmp_path: Any
) -> None:
    (tmp_path / "hostile.png").write_bytes(images.png(50_000, 50_000, rows=1))

    async def look() -> list[int]:
        await read_image(small_image)
        seen = [idle_worker()]
        await read_image(small_image)
        seen.append(idle_worker())
        await said(str(tmp_path / "hostile.png"))
        assert image_pool.pool().idle == []
        gone(seen[0])
        await read_image(small_image)
        return [*seen, idle_worker()]

    first, second, third = run(look)
    assert first == second != third


def test_an_idle_worker_ends(small_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def look() -> None:
        await read_image(small_image)
        pid = idle_worker()
        with monkeypatch.context() as patch:
            patch.setattr(image_pool, "IDLE_SECONDS", 0.1)
            await read_image(small_image)
        await until(lambda: not status(pid) and image_pool.pool().idle == [])
        await read_image(small_image)

    run(look)


def test_at_most_two_at_a_time_and_the_rest_wait_their_turn(
    server: Process, slow_image: str, small_image: str
) -> None:
    for _ in range(3):
        server.ask("tools/call", {"name": "ReadImage", "arguments": {"file_path": slow_image}})
    waiting = server.ask("tools/call", {"name": "ReadImage", "arguments": {"file_path": small_image}})
    eventually(lambda: len(workers(server.pid)) == 2)
    assert server.request("ping")["result"] == {}
    for _ in range(20):
        assert len(workers(server.pid)) <= 2
        time.sleep(0.01)
    server.notify("notifications/cancelled", {"requestId": waiting - 3})
    server.notify("notifications/cancelled", {"requestId": waiting - 2})
    server.notify("notifications/cancelled", {"requestId": waiting - 1})
    (answer,) = server.answers(1)
    assert answer["id"] == waiting
    assert answer["result"]["isError"] is False


def test_a_cancelled_call_ends_its_worker(server: Process, slow_image: str) -> None:
    """ReadImage: a cancelled call ends its process."""
    request = server.ask("tools/call", {"name": "ReadImage", "arguments": {"file_path": slow_image}})
    (pid,) = eventually(lambda: workers(server.pid))
    server.notify("notifications/cancelled", {"requestId": request})
    gone(pid)
    assert server.request("ping")["result"] == {}


@pytest.mark.alone
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("end", ["end of input", "SIGTERM", "SIGKILL"])
def test_no_worker_outlives_the_server(
    server: Process, slow_image: str, small_image: str, end: str, busy: bool
) -> None:
    """ReadImage: no process of it outlives the server."""
    server.call("ReadImage", file_path=small_image)
    if busy:
        server.ask("tools/call", {"name": "ReadImage", "arguments": {"file_path": slow_image}})
        time.sleep(0.1)
    (pid,) = workers(server.pid)
    began = time.monotonic()
    if end == "end of input":
        server.close_stdin()
    else:
        server.signal(signal.SIGTERM if end == "SIGTERM" else signal.SIGKILL)
    assert server.wait() == (-signal.SIGKILL if end == "SIGKILL" else 0)
    assert time.monotonic() - began < 2.0
    gone(pid)


def test_no_call_outlasts_the_clients_patience(slow_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ReadImage: no call outlasts the client's patience."""
    monkeypatch.setenv("FASTRPC_PATIENCE_SECONDS", "0.5")

    async def look() -> None:
        assert "was not read within 0.5 s" in await said(slow_image)
        await until(lambda: workers(os.getpid()) == [])

    run(look)


def test_nothing_stays_open_after_many_calls(small_image: str, tmp_path: Any) -> None:
    (tmp_path / "broken.png").write_bytes(images.png(8, 8)[:40])

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def look() -> None:
        await read_image(small_image)
        gc.collect()  # what it closes is not counted
        before = open_files()
        for _ in range(10):
            await read_image(small_image)
            await said(str(tmp_path / "broken.png"))
            await said(str(tmp_path))
        await read_image(small_image)
        await until(lambda: open_files() <= before + 1)  # an idle reaper more

    run(look)


def test_a_drawing_is_painted_by_the_browser(server: Process, tmp_path: Any) -> None:
    """ReadImage: an SVG becomes a PNG through the browser."""
    chromium.need()
    drawing = """<svg xmlns="http://www.w3.org/2000/svg" width="900" height="600" viewBox="0 0 3 2">
    <rect width="3" height="2" fill="lime"/><text x="1" y="1" font-size=".4">مرحبا 👩‍👩‍👧</text></svg>"""
    (tmp_path / "drawing.svg").write_text(drawing, encoding="utf-8")
    result = server.call("ReadImage", seconds=60, file_path=str(tmp_path / "drawing.svg"))
    assert result["isError"] is False, result
    data = base64.b64decode(result["content"][0]["data"])
    with Image.open(io.BytesIO(data)) as image:
        assert image.width * 2 == image.height * 3
        assert image.convert("RGB").getpixel((2, 2)) == (0, 255, 0)
    assert result["content"][1]["text"].startswith(
        f"SVG, {len(drawing.encode())} bytes; drawn by the browser"
    )


def test_a_broken_drawing_is_refused(server: Process, tmp_path: Any) -> None:
    (tmp_path / "broken.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><rect")
    result = server.call("ReadImage", seconds=60, file_path=str(tmp_path / "broken.svg"))
    assert result["isError"] is True
