"""What tests write into a store of entries, and for whom; words of many scripts."""

from __future__ import annotations

from fastrpc.tools.knowledge._store.entries import Entries, Entry, Reader
from hypothesis import strategies as st

ADA, BOB = Reader("ada", "agent"), Reader("bob", "agent")


def write(store: Entries, content: str, reader: Reader = ADA, **options: object) -> Entry:
    values = {"category": "fact", "scope": "user", "tags": [], "source": "", **options}
    done = store.write(reader, content, **values)  # type: ignore[arg-type]
    assert done is not None
    return done[0]


SCRIPTS = [
    "aBzÉßøœĲﬁſ\u0301\u0308'’-_.9",
    "абвЁйё\u0301",
    "αΆςΣ\u0345",
    "أإآةىيئؤلاـَُّﷺ٣",
    "שלוםְִֹ",
    "कखिा्ंड़ज़",
    "தமிழ்",
    "กำแพงเ",
    "会议室、々〇㍿",
    "カﾀﾞだがﾞ゙",
    "한국어ᄒ\u1161",
    "ԱբևՈՒ",
    "Გგ",
    "İIıi\u0307",
]
"""Letters that fold, stem or join in separate ways."""
pieces = st.sampled_from(SCRIPTS).flatmap(
    lambda letters: st.builds(str.__mul__, st.text(st.sampled_from(letters), max_size=9), st.integers(1, 30))
)
