"""Finds skills: folders with a ``SKILL.md``, in several places; the first place wins.

The places are ``./.claude/skills``, ``~/.claude/skills``, each folder of ``ADDITIONAL_SKILLS`` and the skills
that come with fastrpc. A scan costs a listing for each place and a `stat` for each skill. A file is read
again only if its mtime has changed, or was so recent that the file may have been written since. Nothing is
opened but a ``SKILL.md``: a caller's name is looked up and never becomes part of a path. The working
directory may be a cloned repository, whose author is not the user: there a link that leads out of the project
is refused. Imports nothing expensive.
"""

from __future__ import annotations

import os
import time

from fastrpc import regular_files

from . import _front_matter, _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "SKILL.md"
FILE_LIMIT = 1024 * 1024
HEAD_LIMIT = 16 * 1024  # of a file, as far as the catalogue reads
NAME_LIMIT = 64
PLACE_LIMIT = 500  # entries of one place that are read
SETTLED_NS = 50_000_000  # a write later than this after the mtime changes the mtime
FILES_LIMIT = 200  # names beside a SKILL.md that are listed
DESCRIPTION_LIMIT = 300
CATALOGUE_LIMIT = 16_000
NARROWER = (DESCRIPTION_LIMIT, 120, 40)
"""The lengths to which descriptions in the catalogue are cut: the next where all together would be too
long."""

BUILT_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_built_in_skills")


class Unreadable(Exception):
    """The content of a ``SKILL.md`` cannot be used. The message is a part of a sentence."""


class Unreachable(Unreadable):
    """The file cannot even be read; that may change while the file does not."""


class Place:
    """A folder with skills. `inside` is the real path that its links must not leave; None: the user's own
    folder, in which links may lead anywhere."""

    __slots__ = ("inside", "label", "path")

    def __init__(self, label: str, path: str, inside: str | None = None) -> None:
        self.label = label
        self.path = path
        self.inside = inside


class Skill:
    """One skill in the catalogue; `problem` says why it cannot be used, if so."""

    __slots__ = ("description", "folder", "mtime", "name", "place", "problem")

    def __init__(self, place: Place, folder: str) -> None:
        self.place = place
        self.folder = folder
        self.name = one_line(os.path.basename(folder))
        self.description = ""
        self.problem = ""
        self.mtime = -1

    @property
    def path(self) -> str:
        return os.path.join(self.folder, FILE)


class SkillRegistry:
    """The skills that were found: `skills` by their folded name, and the unusable ones."""

    __slots__ = ("broken", "skills")

    def __init__(self) -> None:
        self.skills: dict[str, Skill] = {}
        self.broken: dict[str, Skill] = {}

    def get(self, name: str) -> Skill | None:
        """Return the skill with this name, or in this folder; case is ignored if only one skill matches
        then."""
        if len(name) > 4 * NAME_LIMIT:
            return None
        key = folded(name)
        found = self.skills.get(key)
        if found is not None:
            return found
        anyhow = key.casefold()
        same = [
            skill
            for skill in self.skills.values()
            if key == folded(os.path.basename(skill.folder)) or anyhow == folded(skill.name).casefold()
        ]
        return same[0] if len(same) == 1 else None


# ------------------------------------------------------------------------------------------ places


def places() -> Iterator[Place]:
    """Yield the folders that may hold skills, in order of precedence."""
    home = os.path.expanduser("~")
    own = os.path.join(home, ".claude", "skills")
    try:
        here = os.getcwd()
    except OSError:  # it was deleted
        here = ""
    if here and not _same(here, home):
        yield Place("project", os.path.join(here, ".claude", "skills"), _project(here, home))
    yield Place("home", own)
    for folder in _settings.ADDITIONAL_SKILLS.read():
        yield Place("additional", folder)
    yield Place("built-in", BUILT_IN)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _project(here: str, home: str) -> str:
    """Return the real path of the project: the nearest folder upward with ``.git``, else the working
    directory. The home folder may be a repository too; it is not the project of folders within it."""
    here = folder = os.path.realpath(here)
    home = os.path.realpath(home)
    while folder != home and folder != os.path.dirname(folder):
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        folder = os.path.dirname(folder)
    return here


# ------------------------------------------------------------------------------------------- looking

_known: dict[tuple[str, str | None], Skill] = {}
"""The skills of the last scan, by path and by the path that their links must not leave."""


def look() -> SkillRegistry:
    """Return the skills that exist now."""
    global _known
    catalogue = SkillRegistry()
    seen: dict[tuple[str, str | None], Skill] = {}
    for place in places():
        for folder in _folders(place):
            skill = _skill_of(place, folder)
            if skill is None:
                continue
            seen[skill.path, place.inside] = skill
            kind = catalogue.broken if skill.problem else catalogue.skills
            kind.setdefault(folded(skill.name), skill)
    _known = seen
    return catalogue


def _folders(place: Place) -> list[str]:
    """Return the folders in a place, by name, without built-in ones that are switched off."""
    try:
        names = sorted(os.listdir(place.path))
    except OSError:
        return []
    if place.label == "built-in":
        names = [name for name in names if _settings.SKILLS.read(name)]
    return [os.path.join(place.path, name) for name in names[:PLACE_LIMIT]]


def _skill_of(place: Place, folder: str) -> Skill | None:
    """Return the skill in a folder, None without one; it is read again if its file has changed."""
    path = os.path.join(folder, FILE)
    try:
        mtime = os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return None
    known = _known.get((path, place.inside))
    if known is not None and known.mtime == mtime and known.place.label == place.label:
        return known
    skill = Skill(place, folder)
    is_settled = abs(time.time_ns() - mtime) > SETTLED_NS  # at this time, before it is read
    try:
        _describe(skill, read(skill, HEAD_LIMIT))
    except Unreadable as problem:
        skill.problem = str(problem)
        if isinstance(problem, Unreachable):
            return skill
    if is_settled:
        skill.mtime = mtime
    return skill


def _describe(skill: Skill, text: str) -> None:
    """Take over the front matter; without one, the folder's name and the first line of the text."""
    try:
        keys, body = _front_matter.split(text)
    except _front_matter.NeverClosed as problem:
        raise Unreadable(str(problem)) from None
    name = one_line(keys.get("name", "")) or skill.name
    if len(name) > NAME_LIMIT:
        raise Unreadable(f"its name has {len(name)} characters, at most {NAME_LIMIT} are accepted")
    skill.name = name
    skill.description = one_line(keys.get("description", "")) or _first_line(body)


def _first_line(body: str) -> str:
    for line in body[: 4 * DESCRIPTION_LIMIT].split("\n"):
        line = one_line(line.lstrip("# \t"))
        if line:
            return line
    return ""


# ------------------------------------------------------------------------------------------- reading


def read(skill: Skill, most: int = FILE_LIMIT) -> str:
    """Return the text of a skill's file. Of a file longer than `most` bytes, return the lines within them, if
    `most` is less than a file may have. Raises Unreadable."""
    try:
        descriptor = _open(skill)
    except OSError as error:
        raise Unreachable(f"it cannot be opened: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        data = _bytes(descriptor, min(most, FILE_LIMIT) + 1)
    except OSError as error:
        raise Unreachable(f"it cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if max(status.st_size, len(data)) > FILE_LIMIT:
        raise Unreadable("it is larger than 1 MiB")
    if len(data) > most:
        data = data[: data.rfind(b"\n", 0, most) + 1]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8 (byte {error.start})") from None


def body_of(skill: Skill) -> str:
    """Return the whole text of a skill after its front matter. Raises Unreadable."""
    try:
        return _front_matter.split(read(skill))[1].strip("\n")
    except _front_matter.NeverClosed as problem:
        raise Unreadable(str(problem)) from None


def _bytes(descriptor: int, most: int) -> bytes:
    pieces = []
    while most > 0 and (piece := os.read(descriptor, most)):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _open(skill: Skill) -> int:
    inside = skill.place.inside
    if inside is None:
        return regular_files.open_regular(skill.path)
    real = os.path.realpath(skill.path)
    if not real.startswith(inside.rstrip("/") + "/"):
        raise Unreachable("a link leads out of the project, which is refused for what came with it")
    *names, name = real[len(inside.rstrip("/")) + 1 :].split("/")
    folder = regular_files.open_folder_beneath(inside, names)
    try:
        return regular_files.open_regular(name, follow=False, dir_fd=folder)
    finally:
        os.close(folder)


def files_beside(skill: Skill) -> tuple[list[str], int]:
    """Return the names of the entries beside a skill's file, folders with a slash, and the number of further
    ones. Nothing is opened."""
    names = []
    try:
        with os.scandir(skill.folder) as entries:
            for entry in entries:
                if entry.name != FILE:
                    folder = entry.is_dir(follow_symlinks=False)
                    names.append(writable(entry.name) + ("/" if folder else ""))
    except OSError:
        pass
    names.sort()
    return names[:FILES_LIMIT], max(0, len(names) - FILES_LIMIT)


# -------------------------------------------------------------------------------------------- texts


def folded(name: str) -> str:
    """Return a name in the form for comparison: composed, since file systems and keyboards differ in that."""
    name = name.strip()
    if name.isascii():
        return name
    from fastrpc.unicode_forms import normal_form

    return normal_form("NFC", name)


def one_line(text: str) -> str:
    """Return a text as one line, without control characters."""
    line = " ".join(text.split())
    if line.isprintable():  # most are
        return line
    return " ".join("".join(" " if _is_control(c) else c for c in _characters(text)).split())


def writable(text: str) -> str:
    """Return a path as a text that any reader can decode: what is not a character becomes U+FFFD."""
    return "".join("\ufffd" if _is_control(c) else c for c in _characters(text))


def _characters(text: str) -> str:
    """Return a text without lone surrogates, which an invalid escape or a file's name may contain."""
    return (
        text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"


def shorten(text: str, most: int) -> str:
    """Cut a text, between two words if a space is near."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    gap = cut.rfind(" ", most // 2)
    return (cut[:gap] if gap > 0 else cut).rstrip(" ,;:.") + "…"


def as_text(catalogue: SkillRegistry) -> str:
    """Return the catalogue as lines ``- name: description``, sorted. It is bounded, since every list of tools
    contains it: first the descriptions are cut, then names are left out, and the last line gives their
    number."""
    skills = sorted(catalogue.skills.values(), key=lambda skill: skill.name)
    lines: list[str] = []
    for most in NARROWER:
        lines = [_line(skill, most) for skill in skills]
        if sum(map(len, lines)) + len(lines) <= CATALOGUE_LIMIT:
            return "\n".join(lines)
    room = CATALOGUE_LIMIT
    for shown, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return "\n".join(
                (*lines[:shown], f"({len(lines) - shown} more skills; the list would be too long)")
            )
    return "\n".join(lines)


def _line(skill: Skill, most: int) -> str:
    description = shorten(skill.description, most)
    return f"- {skill.name}: {description}" if description else f"- {skill.name}"
