"""Reads what is to be imported: notes in Markdown, JSON and JSON lines, in the forms of this toolset,
server-memory, basic-memory and mem0.

    for item in items("notes"): …

Each item is a place (file and line) with the arguments of memory.write as a dict, or with a `Broken` if it
cannot be imported. `items` reads one file at a time, and JSON lines one line at a time. In a folder it
follows no links and leaves out hidden files.
"""

from __future__ import annotations

import json
import os
import re

from fastrpc import FastrpcError
from fastrpc.regular_files import open_regular, read_regular

from . import _structured_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Item = tuple[str, "dict[str, Any] | Broken"]

LARGEST_BYTES = 256 * 1024 * 1024
"""Bytes of a file that is read whole."""
LONGEST_LINE = 4 * 1024 * 1024
PART_BYTES = 15_000
"""Characters of a part of a note that is too long for one entry; its title precedes each part."""
NOTES, LINES = (".md", ".markdown"), (".jsonl", ".ndjson")
KINDS = (*NOTES, *LINES, ".json")
LISTS = ("entries", "memories", "results")
OBSERVATION = re.compile(r"\s*[-*] \[(?![ xX]\])([^\]\n]{1,64})\] (.+)")
RELATION = re.compile(r"\s*[-*] ([^\[\]\n]{0,64}?)\s*\[\[([^\]\n]{1,200})\]\]\s*(?:\(.*\))?")
HASH_TAG = re.compile(r"(?<!\S)#([^\s#]{1,64})")


class Broken(FastrpcError):
    """Something that cannot be imported."""


def items(path: str, read_bytes: Callable[[int], object] = lambda number: None) -> Iterator[Item]:
    """Return the items of a file or a folder. `read_bytes` is called with the number of bytes read. Raises
    OSError for a path that cannot be read at all."""
    if not os.path.isdir(path):
        yield from _of_file(path, os.path.basename(path), read_bytes, follow=True)
        return
    for place, name in files(path):
        try:
            yield from _of_file(place, name, read_bytes, follow=False)
        except OSError as error:
            yield name, Broken(error.strerror or str(error))


def files(folder: str) -> Iterator[tuple[str, str]]:
    """Return the files of a folder that can be imported, with their relative names."""

    def fail(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and name.lower().endswith(KINDS):
                whole = os.path.join(place, name)
                yield whole, os.path.relpath(whole, folder)


def _of_file(path: str, name: str, read_bytes: Callable[[int], object], *, follow: bool) -> Iterator[Item]:
    ending = os.path.splitext(name)[1].lower()
    if ending in LINES:
        yield from _lines(open_regular(path, follow=follow), name, read_bytes)
        return
    data = read_regular(path, LARGEST_BYTES, follow=follow)
    read_bytes(len(data))
    try:
        text = data.decode("utf-8-sig")
        if ending in NOTES:
            found = list(_note(text, name))
        elif ending == ".json":
            found = [each for part in _parts(_structured_text.parse(text, "json")) for each in _entries(part)]
        else:
            raise Broken(f"expected a file of a kind that can be imported ({', '.join(KINDS)})")
    except UnicodeDecodeError as error:
        yield name, Broken(f"expected UTF-8, broken at byte {error.start:,}")
    except (_structured_text.Malformed, Broken) as error:
        yield name, Broken(str(error))
    else:
        for at, entry in enumerate(found, 1):
            yield (
                f"{name}#{at}" if len(found) > 1 else name,
                {"source": name, **entry} if ending in NOTES else entry,
            )


def _lines(descriptor: int, name: str, read_bytes: Callable[[int], object]) -> Iterator[Item]:
    with open(descriptor, "rb") as file:
        at = 0
        while line := file.readline(LONGEST_LINE):
            at += 1
            read_bytes(len(line))
            where = f"{name}:{at}"
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                yield where, Broken(f"expected a line of at most {LONGEST_LINE:,} bytes")
                continue
            if not line.strip():
                continue
            try:
                parsed = json.loads(line.decode("utf-8-sig"))
                found = _entries(parsed)
            except UnicodeDecodeError as error:
                yield where, Broken(f"expected UTF-8, broken at byte {error.start:,}")
            except (ValueError, RecursionError):
                yield where, Broken("expected a JSON object on the line")
            except Broken as error:
                yield where, error
            else:
                for entry in found:
                    yield where, entry


def _parts(whole: Any) -> list[Any]:
    """Return the entries of a document of JSON: a list, one of the names of lists, or one entry."""
    if isinstance(whole, list):
        return whole
    if isinstance(whole, dict):
        for name in LISTS:
            if isinstance(whole.get(name), list):
                return list(whole[name])
        if isinstance(whole.get("entities"), list):  # server-memory's graph
            relations = whole.get("relations") or []
            return [
                *({"type": "entity", **each} for each in whole["entities"] if isinstance(each, dict)),
                *({"type": "relation", **each} for each in relations if isinstance(each, dict)),
            ]
    return [whole]


def _entries(part: Any) -> list[dict[str, Any]]:
    """Return the entries in one object. Raises Broken."""
    if not isinstance(part, dict):
        raise Broken(f"expected a JSON object, got {type(part).__name__}")
    kind = part.get("type")
    if kind == "entity" and "name" in part:
        observations = part.get("observations") or []
        if not isinstance(observations, list):
            raise Broken(f"observations: expected a list, got {type(observations).__name__}")
        name, type_ = str(part["name"]), str(part.get("entityType") or "")
        about = f"{name} ({type_})" if type_ else name
        tags = [type_[:64]] if type_.strip() else []
        return [
            {"content": f"{about}: {each}", "category": "observation", "tags": tags} for each in observations
        ] or [{"content": about, "category": "observation", "tags": tags}]
    if kind == "relation" and {"from", "to", "relationType"} <= part.keys():
        return [{"content": f"{part['from']} {part['relationType']} {part['to']}", "category": "fact"}]
    if isinstance(part.get("memory"), str):  # mem0
        categories = part.get("categories")
        return [
            {
                "content": part["memory"],
                "tags": categories if isinstance(categories, list) else [],
                "date": part.get("updated_at") or part.get("created_at"),
            }
        ]
    if "content" not in part:
        raise Broken("content: required, missing")
    return [part]


def _note(text: str, name: str) -> Iterator[dict[str, Any]]:
    """Return the entries in a Markdown note. A note of basic-memory has observations and relations, each of
    which is a separate entry."""
    facts, body = _front_matter(text)
    title = str(facts.get("title") or os.path.splitext(os.path.basename(name))[0])
    tags = facts.get("tags") or []
    tags = [str(each).strip("# ") for each in (tags.split(",") if isinstance(tags, str) else tags)]
    date = facts.get("date") or facts.get("modified") or facts.get("created")
    common = {key: facts[key] for key in ("category", "scope") if isinstance(facts.get(key), str)}
    common |= {"tags": tags, "date": str(date) if date else None}
    rest = []
    for line in body.splitlines():
        observation = OBSERVATION.fullmatch(line) if "permalink" in facts else None
        relation = RELATION.fullmatch(line) if "permalink" in facts else None
        if observation is not None:
            own = [observation[1].strip(), *HASH_TAG.findall(line)]
            yield {
                **common,
                "content": f"{title}: {observation[2]}",
                "category": "observation",
                "tags": [*tags, *own],
            }
        elif relation is not None:
            content = f"{title} {relation[1].strip() or 'relates to'} {relation[2]}"
            yield {**common, "content": content, "category": "fact"}
        else:
            rest.append(line)
    if any(line.strip() and not line.startswith("#") for line in rest):
        for part in _parts_of_note("\n".join(rest).strip()):
            begins_with_title = part.lstrip("# ").startswith(title)
            yield {**common, "content": part if begins_with_title else f"{title}\n\n{part}"}


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}, text
    facts = _structured_text.parse("\n".join(lines[1:end]), "yaml")
    if facts is not None and not isinstance(facts, dict):
        raise Broken(f"front matter: expected names and values, got {type(facts).__name__}")
    return facts or {}, "\n".join(lines[end + 1 :])


def _parts_of_note(text: str) -> Iterator[str]:
    """Return a text in parts that fit an entry, cut between paragraphs if possible."""
    part = ""
    for paragraph in text.split("\n\n"):
        while len(paragraph.encode()) > PART_BYTES:
            kept = paragraph.encode()[:PART_BYTES].decode(errors="ignore")
            yield from filter(None, (part, kept))
            part, paragraph = "", paragraph[len(kept) :]
        if part and len(part.encode()) + len(paragraph.encode()) > PART_BYTES:
            yield part
            part = ""
        part = f"{part}\n\n{paragraph}" if part else paragraph
    if part:
        yield part


def seconds_of(date: object) -> float | None:
    """Return a date as seconds since 1970; None without one. Raises Broken."""
    from datetime import datetime, timezone

    if date is None or date == "":
        return None
    try:
        if isinstance(date, (int, float)) and not isinstance(date, bool):
            datetime.fromtimestamp(date, timezone.utc)
            return float(date)
        found = datetime.fromisoformat(str(date).strip().replace("Z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError, OSError):
        raise Broken(f"date: expected ISO 8601, got {str(date)!r:.60}") from None
