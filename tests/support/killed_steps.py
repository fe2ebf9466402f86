"""A program: does something to a knowledge store in a process that is killed (SIGKILL) before its first step,
then anew before its second, and so on until it is not killed any more.

    python -m support.killed_steps SCENARIO FOLDER

A step is a statement or the end of a transaction of a database, or a file that is opened, renamed, removed or
made. Each time the store is a copy of the same one. After each kill it has to be whole, and hold what it held
or what was being done; doing it again has to end as it would have without. The program prints how many steps
there were; it ends with exit code 1, and says what is wrong, where something is.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastrpc.tools.knowledge import _moving_commands
from fastrpc.tools.knowledge._extraction import Extracted, passages
from fastrpc.tools.knowledge._store import documents, moving
from fastrpc.tools.knowledge._store.documents import Documents
from fastrpc.tools.knowledge._store.entries import Entries, Reader
from fastrpc.tools.knowledge._store.kind import KNOWLEDGE
from sqlalchemy import event, text
from sqlalchemy.engine import Engine

from fastrpc.storage import open_database

ADA = Reader("ada", "agent")
STEPS = {"os.rename", "os.remove", "os.link", "os.mkdir", "sqlite3.connect"}
TABLES = {
    "knowledge_entries": "content, category, tags, source, superseded_by IS NULL",
    "knowledge_documents": "digest, name, type, size, tags, state, reason, warnings, title, language, pages",
    "knowledge_pages": "page, content, markdown",
    "knowledge_passages": "position, page, heading, content",
    "knowledge_passage_words": "words, stems",
    "knowledge_words": "words, stems",
}


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/store.sqlite3"


def contents(folder: Path) -> dict[str, Any]:
    """What a store and a folder beside it hold, but for ids and times."""
    database = open_database(url_of(folder), KNOWLEDGE)
    try:
        found: dict[str, Any] = {"problems": moving.problems(database)}
        with database.reading() as connection:
            for table, columns in TABLES.items():
                rows = connection.execute(text(f"SELECT {columns} FROM {table}")).all()
                found[table] = sorted(map(repr, rows))
    finally:
        database.close()
    originals = folder / "store.sqlite3.originals"
    found["originals"] = sorted(os.listdir(originals)) if originals.exists() else []
    for path in sorted((folder / "out").glob("*/*")):
        if path.suffix in ("", ".json"):
            found[path.name] = path.read_bytes()
    return found


def count_down(steps: int) -> None:
    """Have this process killed before so many steps are done."""
    left = steps

    def step(*arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "before_cursor_execute", step)
    event.listen(Engine, "commit", step)
    sys.addaudithook(lambda name, arguments: step() if name in STEPS else None)


# --- what is done ------------------------------------------------------------------------------------------


def with_store(folder: Path, work: Callable[[Any], None]) -> None:
    database = open_database(url_of(folder), KNOWLEDGE)
    work(database)
    database.close()


def write_and_forget(folder: Path) -> None:
    def work(database: Any) -> None:
        store = Entries(database)
        for content, scope in (("Ada lives in Paris.", "user"), ("A note.", "user"), ("Agent's.", "agent")):
            store.write(ADA, content, "fact", scope, ["tag"], "here")
        by_content = {each.content: each.id for each in store.page(ADA, None, 10)}
        store.write(ADA, "Ada lives in Rome.", "fact", "user", (), "", by_content["Ada lives in Paris."])
        store.forget(ADA, by_content["A note."])
        store.forget_all(ADA, "agent")

    with_store(folder, work)


def add(store: Documents, name: str, *pages: str) -> str:
    data = "\f".join(pages).encode()
    documents.GIVEN_UP_SECONDS = -1.0  # who was killed works on it no more
    document, is_begun = store.begin(ADA, name, data, ["tag"])
    if is_begun:
        store.is_chunking(document.number)
        extracted = Extracted(list(pages), markdown=list(pages), media_type="text/markdown")
        store.finish(document.number, extracted, passages(extracted))
    return document.id


def add_and_delete_documents(folder: Path) -> None:
    def work(database: Any) -> None:
        store = Documents(database)
        add(store, "a.md", "# Ships\n\nA ship.", "# Fees\n\nTen.")
        store.delete(ADA, add(store, "b.md", "# Gone\n\nGone."))

    with_store(folder, work)


def fill(folder: Path) -> None:
    """A store with entries and documents, for an export."""
    write_and_forget(folder)
    with_store(folder, lambda database: print(add(Documents(database), "a.md", "# Ships\n\nA ship.")))
    add_and_delete_documents(folder)


def import_lines(folder: Path) -> None:
    lines = "".join(f'{{"content": "entry {number}", "tags": ["a"]}}\n' for number in range(250))
    moving.LOT = 100  # several transactions
    place = folder.parent / "lines.jsonl"
    if not place.exists():
        place.write_text(lines)
    command(_moving_commands.import_entries, str(place), folder)


def export_all(folder: Path) -> None:
    command(_moving_commands.export_entries, str(folder / "out"), folder)


def import_folder(folder: Path) -> None:
    command(_moving_commands.import_entries, str(folder.parent / "source" / "out"), folder)


def command(work: Callable[[list[str]], int], path: str, folder: Path) -> None:
    assert work([path, "--database", url_of(folder), "--owner", "ada"]) == 0


def nothing(folder: Path) -> None:
    with_store(folder, lambda database: None)


SCENARIOS: dict[str, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
    "write": (nothing, write_and_forget),
    "documents": (nothing, add_and_delete_documents),
    "import": (nothing, import_lines),
    "export": (fill, export_all),
    "import-folder": (nothing, import_folder),
}
"""What the store is made by, and what is done to it."""

# --- the run -----------------------------------------------------------------------------------------------


def in_child(work: Callable[[Path], None], folder: Path, steps: int = 0) -> bool:
    """Do something in a separate process, which is killed at a step; return whether it was not."""
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if steps:
                count_down(steps)
            work(folder)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    assert status == 0, f"step {steps}: it failed"
    return True


def main(scenario: str, place: Path) -> None:
    make, work = SCENARIOS[scenario]
    if scenario == "import-folder":
        (place / "source").mkdir()
        in_child(fill, place / "source")
        in_child(export_all, place / "source")
    template, folder = place / "template", place / "killed"
    template.mkdir()
    in_child(make, template)
    shutil.copytree(template, folder)
    in_child(work, folder)
    wanted = contents(folder)
    assert wanted["problems"] == [], wanted["problems"]
    steps = 0
    is_over = False
    while not is_over:
        steps += 1
        shutil.rmtree(folder)
        shutil.copytree(template, folder)
        is_over = in_child(work, folder, steps)
        after = contents(folder)
        assert after["problems"] == [], f"step {steps}: {after['problems']}"
        in_child(work, folder)
        again = contents(folder)
        wrong = [name for name in wanted if again.get(name) != wanted[name]]
        assert not wrong, f"step {steps}: {wrong[0]}: {again.get(wrong[0])} instead of {wanted[wrong[0]]}"
    print(steps)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
