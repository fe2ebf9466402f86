"""What every test may use: the helpers of the package `support`, the test data, and fixtures that
several files want.

That this file exists puts `tests/` on the import path, so a test writes
`from support.stdio import serve`. Every test has the recorder: a line of a server's that its
version's schema does not allow fails the test during which it came. The schemas are not in the repository
(`support/published.py` finds them): a clone without them runs unrecorded, and says so at its end. In CI,
where FASTRPC_DATA_DIR names a folder that lacks them, or without jsonschema-rs, a run fails before its first
test.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from support import published
from support.programs import extend_path
from support.protocol import SESSION_VERSIONS, STATELESS

if TYPE_CHECKING:
    from support.chromium import Loop, Reader
    from support.remote_server import Remote
    from support.schema_recorder import Recorder
    from support.web_server import Web
    from support.wire_conversation import Conversation

# A machine that is busy must not fail a test: nothing here is about the time that one example takes. Two runs
# of the same source try the same examples, so what fails is what was changed; `make explore` tries others.
settings.register_profile("fastrpc", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("fastrpc")

# A shell starts what it runs in the background with SIGINT ignored, nohup with SIGHUP, and so would be every
# server of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

extend_path()

# Most servers of tests have tools without a docstring, of which serving warns. What else they write counts.
os.environ.setdefault("PYTHONWARNINGS", "ignore::UserWarning")
os.environ.pop("FORCE_COLOR", None)  # CI's logs have colours; what tests look at has them where they say so

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORDER = pytest.StashKey["Recorder"]()
pytest_plugins = ["support.skips", "support.command_line"]


def pytest_configure(config: pytest.Config) -> None:
    """Make the recorder, or fail: a run that records nothing must not pass as one that found nothing. Only a
    clone that has no test data beside it, and is given none, goes without."""
    from support.skips import in_ci

    if not os.path.isdir(published.FOLDER) and not published.NAMED and not in_ci():
        return
    try:
        from support.schema_recorder import Recorder

        config.stash[RECORDER] = Recorder(os.path.join(published.FOLDER, "mcp-schema"))
    except (ImportError, FileNotFoundError) as error:
        raise pytest.UsageError(
            f"the recorder cannot run: {error}. FASTRPC_DATA_DIR names the folder with mcp-schema, "
            f"the extra 'schema' brings the library."
        ) from None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Have no one look for garbage among the tests, neither while they are found nor later: none of them is
    any, and looking through them takes a fifth of the time that finding them does."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fail where a test with a mark is in a file in which the Makefile would not look for it: it takes those
    that have its words."""
    for name in ("alone", "long"):
        for path in {item.path for item in items if item.get_closest_marker(name) is not None}:
            if f"mark.{name}" not in path.read_text(encoding="utf-8"):
                raise pytest.UsageError(
                    f"{path} has a test with the mark {name!r} and nowhere says mark.{name}"
                )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test of a version's schema where the data that were fetched lack it."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    if any(map(published.lacks, values)) and "data_folder" in getattr(item, "fixturenames", ()):
        pytest.skip(published.NO_SCHEMA)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """``-n auto``: twice as many as there are processors, for tests mostly wait: for processes, and for what
    comes only after some time."""
    return 2 * (os.cpu_count() or 1)


@pytest.fixture(scope="session")
def data_folder() -> str:
    """The folder with JSONTestSuite, JSON-Schema-Test-Suite and the MCP schemas."""
    return published.need()


@pytest.fixture
def every_schema(data_folder: str) -> None:
    """The test wants the schemas of all versions."""
    if any(map(published.lacks, (*SESSION_VERSIONS, STATELESS))):
        pytest.skip(published.NO_SCHEMA)


@pytest.fixture(scope="session")
def recorder(request: pytest.FixtureRequest) -> Recorder:
    """The recorder that sees every line of every server."""
    recorder = request.config.stash.get(RECORDER, None)
    if recorder is None:
        pytest.skip(published.missing())
    from support import stdio

    from fastrpc.testing import Client

    stdio.Process.watch = staticmethod(lambda: recorder.conversation("process"))
    Client.watch = staticmethod(lambda client: recorder.conversation(f"Client({client.version})"))
    return recorder


@pytest.fixture(autouse=True)
def every_line_is_valid(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test to whose client a server has sent a line that is not valid in its version."""
    if RECORDER not in request.config.stash:
        yield
        return
    recorder: Recorder = request.getfixturevalue("recorder")
    yield
    violations = recorder.take_violations()
    assert not violations, "invalid by the version's schema:\n" + "\n".join(violations)


@pytest.fixture(autouse=True)
def failures_are_logged_in_their_test() -> Iterator[None]:
    """Have failures of handlers that are only counted be logged while pytest captures their test's log, not
    behind the summary. The first failure in the next test is logged in full again."""
    yield
    tracebacks = sys.modules.get("fastrpc.tracebacks")
    if tracebacks is not None:
        tracebacks.finish()


# --- a server, line by line -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared_wire() -> Iterator[Conversation]:
    """The server of the tests of the wire, which a whole file talks to."""
    from support.wire_conversation import talk

    with talk() as conversation:
        yield conversation


@pytest.fixture
def wire(shared_wire: Conversation) -> Conversation:
    """The same, with nothing unread that a test before has left."""
    shared_wire.settle()
    return shared_wire


# --- servers behind others --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared_remote() -> Iterator[Remote]:
    """A server over HTTP in a separate process, for tests that leave it as it is."""
    from support.remote_server import Remote

    with Remote() as remote:
        yield remote


@pytest.fixture
def own_remote() -> Iterator[Remote]:
    """One that a test may change, end and start again."""
    from support.remote_server import Remote

    with Remote() as remote:
        yield remote


# --- pages and who reads them -----------------------------------------------------------------------------


@pytest.fixture
def web() -> Iterator[Web]:
    """A web server on the loopback address, still without pages."""
    from support.web_server import serve

    with serve() as server:
        yield server


@pytest.fixture(scope="module")
def shelter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A folder for all that the tests of a file write: state and temporary files, the browser's too."""
    from support import chromium

    with chromium.shelter(tmp_path_factory) as path:
        yield path


@pytest.fixture(scope="module")
def browser_loop(shelter: str) -> Iterator[Loop]:
    """The loop of the browser that the tests of a file share; without Chromium they are skipped."""
    from support import chromium

    chromium.need()
    loop = chromium.Loop()
    yield loop
    loop.close()


@pytest.fixture
def read(browser_loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """ReadDocs, with no page in its memory."""
    from fastrpc.tools.agent import _page_cache
    from support.chromium import Reader

    monkeypatch.setattr(_page_cache, "_pages", {})
    return Reader(browser_loop)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages converted however long it takes: the machine may be busy with other things."""
    from fastrpc.tools.agent._documents import markdown

    monkeypatch.setattr(markdown, "SECONDS", 1000.0)


# --- the end ----------------------------------------------------------------------------------------------


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of pytest-xdist has ended: add the lines that its recorder has judged."""
    if RECORDER in node.config.stash:
        node.config.stash[RECORDER].lines += getattr(node, "workeroutput", {}).get("recorded_lines", 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput") and RECORDER in session.config.stash:
        session.config.workeroutput["recorded_lines"] = session.config.stash[RECORDER].lines


def pytest_terminal_summary(terminalreporter: Any) -> None:
    stash = terminalreporter.config.stash
    if RECORDER not in stash:
        words = f"lines of servers were NOT held against their schemas: there is no {published.FOLDER}"
        terminalreporter.write_line(words, yellow=True)
    elif lines := stash[RECORDER].lines:
        terminalreporter.write_line(f"{lines} lines of servers were held against their schemas")


@pytest.fixture(autouse=True)
def _what_a_file_asks_of_its_process() -> Iterator[None]:
    """Take back what a server file that a test has loaded has set for its process: that the running call
    is kept, and the level of the log."""
    yield
    plans, diagnostics = sys.modules.get("fastrpc.engine.plans"), sys.modules.get("fastrpc.diagnostics")
    if plans is not None and plans.scope is not None:
        plans.scope = None
        sys.modules["fastrpc.running_call"]._users.clear()
    if diagnostics is not None and diagnostics._default_level != diagnostics.LEVELS["warning"]:
        diagnostics.set_default_level("warning")
