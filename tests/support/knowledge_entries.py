"""What tests write into a store of entries, and for whom."""

from __future__ import annotations

from fastrpc.tools.knowledge._store.entries import Entries, Entry, Reader

ADA, BOB = Reader("ada", "agent"), Reader("bob", "agent")


def write(store: Entries, content: str, reader: Reader = ADA, **options: object) -> Entry:
    values = {"category": "fact", "scope": "user", "tags": [], "source": "", **options}
    done = store.write(reader, content, **values)  # type: ignore[arg-type]
    assert done is not None
    return done[0]
