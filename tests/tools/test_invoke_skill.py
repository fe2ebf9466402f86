"""InvokeSkill: where skills are found, which of two counts, what is given back, and what is never read."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import unicodedata
from typing import Any

import pytest
from fastrpc.tools.agent import _front_matter, _skills, invoke_skill
from support.in_memory import with_client

from fastrpc import Server

PUBLISHED = "Invoke a skill by name for reusable workflows"
BUILT_IN = "create-skill"


class Places:
    """Folders that skills are put into: `project` is the working directory, `home` the user's."""

    def __init__(self, base: Any) -> None:
        self.base = base
        self.project = base / "project"
        self.home = base / "home"
        for folder in (self.project / ".git", self.home):
            folder.mkdir(parents=True)

    def put(self, place: Any, name: str, text: str | bytes = "", *, folder: str = "") -> Any:
        """Write a skill into a folder of skills; with plain text, its front matter is made."""
        if isinstance(text, str) and not text.startswith(("---", "\ufeff")):
            text = f"---\nname: {name}\ndescription: About {name}.\n---\n{text}"
        where = place / (folder or name)
        where.mkdir(parents=True, exist_ok=True)
        (where / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
        return where

    @property
    def own(self) -> Any:
        return self.home / ".claude" / "skills"

    @property
    def cloned(self) -> Any:
        return self.project / ".claude" / "skills"


@pytest.fixture
def places(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Places:
    made = Places(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("ADDITIONAL_SKILLS", raising=False)
    monkeypatch.delenv("SKILL_CREATE_SKILL", raising=False)
    monkeypatch.chdir(made.project)
    return made


def talk(conversation: Any) -> Any:
    """Run a coroutine function with a client of a server that has the tool."""
    app = Server("skills")
    app.include(invoke_skill)
    return with_client(app, conversation)


def invoke(name: str, arguments: str | None = None) -> Any:
    given = {"skill_name": name} if arguments is None else {"skill_name": name, "arguments": arguments}
    return talk(lambda client: client.request("tools/call", {"name": "InvokeSkill", "arguments": given}))


def text_of(result: Any) -> str:
    assert result["isError"] is False, result
    return str(result["content"][0]["text"])


def error_of(result: Any) -> str:
    assert result["isError"] is True, result
    return str(result["content"][0]["text"])


def catalogue() -> list[str]:
    """The lines of the catalogue as a client sees them."""
    listed = talk(lambda client: client.request("tools/list"))["tools"][0]["description"]
    assert listed.startswith(PUBLISHED)
    return [line for line in listed.removeprefix(PUBLISHED).split("\n") if line]


def names() -> list[str]:
    return [line[2:].partition(":")[0] for line in catalogue()]


# ------------------------------------------------------------------------------------------ catalogue


def test_the_description_ends_with_the_catalogue_sorted_one_line_each(places: Places) -> None:
    """InvokeSkill: the description ends with the catalogue, a line `- name: description` each, sorted."""
    places.put(places.own, "zebra")
    places.put(places.cloned, "apple")
    places.put(places.own, "middle", "---\nname: middle\ndescription: >\n  Two\n  lines.\n---\n")
    assert catalogue()[0] == "- apple: About apple."
    assert catalogue()[1].startswith("- create-skill: Write a new skill")
    assert catalogue()[2:] == ["- middle: Two lines.", "- zebra: About zebra."]


def test_without_any_skill_the_description_is_the_published_one(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILL_CREATE_SKILL", "off")
    listed = talk(lambda client: client.request("tools/list"))["tools"][0]
    assert listed["description"] == PUBLISHED
    assert "there are no skills at all" in error_of(invoke(BUILT_IN))


def test_a_long_description_is_cut_and_control_characters_go(places: Places) -> None:
    places.put(places.own, "long", "---\nname: long\ndescription: " + "word " * 200 + "\n---\n")
    places.put(places.own, "odd", '---\nname: odd\ndescription: "a\\x1b[2J\\u0000b\\nc \\ud83d"\n---\n')
    lines = {line[2:].partition(":")[0]: line for line in catalogue()}
    assert len(lines["long"]) <= 300 + len("- long: ")
    assert lines["long"].endswith("word…")
    assert lines["odd"] == "- odd: a [2J b c \ufffd"


def test_the_whole_catalogue_is_bounded_and_says_what_it_leaves_out(places: Places) -> None:
    for number in range(100):
        name = f"skill-{number:03}"
        places.put(places.own, name, f"---\nname: {name}\ndescription: {'many words ' * 30}\n---\n")
    lines = catalogue()
    assert sum(map(len, lines)) < 16_000
    assert len(lines) == 101, "descriptions are cut before a name is left out"
    for number in range(450):
        places.put(places.own, f"{'n' * 50}-{number:03}")
    lines = catalogue()
    assert sum(map(len, lines)) < 16_200
    assert lines[-1].endswith("more skills; the list would be too long)")
    assert invoke(f"{'n' * 50}-010")["isError"] is False, "what is not shown is still there"


# --------------------------------------------------------------------------------------------- places


def test_the_first_place_wins(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """InvokeSkill: of skills with one name the first place wins."""
    more, other = places.base / "more", places.base / "other"
    monkeypatch.setenv("ADDITIONAL_SKILLS", f" {more} , {other},,")
    for place in (other, more, places.own, places.cloned):
        places.put(place, BUILT_IN, f"from {place}")
        text = text_of(invoke(BUILT_IN))
        assert text.startswith(f"from {place}\n")
        assert f"Skill folder: {place}/{BUILT_IN}" in text
    assert names() == [BUILT_IN]


def test_each_place_adds_its_own(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """InvokeSkill: skills lie in `./.claude/skills`, `~/.claude/skills`, each folder of `ADDITIONAL_SKILLS`
    (commas), and in the package.
    """
    monkeypatch.setenv("ADDITIONAL_SKILLS", f"{places.base}/one,~/two")
    places.put(places.cloned, "p")
    places.put(places.own, "h")
    places.put(places.base / "one", "a")
    places.put(places.home / "two", "b")
    assert names() == ["a", "b", BUILT_IN, "h", "p"]
    sources = [invoke(name)["_meta"]["fastrpc/facts"]["source"] for name in names()]
    assert sources == ["additional", "additional", "built-in", "home", "project"]


@pytest.mark.parametrize("off", ["0", "false", "No", "OFF"])
def test_a_switch_takes_a_built_in_skill_away_and_no_other(
    places: Places, monkeypatch: pytest.MonkeyPatch, off: str
) -> None:
    """InvokeSkill: `SKILL_<NAME>=0` switches a built-in skill off."""
    monkeypatch.setenv("SKILL_CREATE_SKILL", off)
    monkeypatch.setenv("SKILL_MINE", off)
    places.put(places.own, "mine")
    assert names() == ["mine"]
    assert "The nearest" in error_of(invoke("min"))
    places.put(places.own, BUILT_IN, "my own")
    assert text_of(invoke(BUILT_IN)).startswith("my own")


def test_a_folder_without_the_file_is_no_skill_and_a_missing_place_is_none(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """InvokeSkill: a folder without `SKILL.md` is no skill."""
    monkeypatch.setenv("ADDITIONAL_SKILLS", "/nowhere,/etc/passwd")
    (places.own / "empty").mkdir(parents=True)
    (places.own / "file").write_text("---\nname: file\n---\n")
    assert names() == [BUILT_IN]


# --------------------------------------------------------------------------------------- what is given


def test_the_whole_body_the_folder_and_the_names_beside_the_file_are_given(places: Places) -> None:
    """InvokeSkill: it returns the body uncut, the folder's path and the names of the files beside it."""
    body = "First line.\n\n" + "A line of many.\n" * 5000 + "Last line."
    folder = places.put(places.own, "whole", body)
    for name in ("b.md", "a.py", ".hidden", "ملف.txt"):
        (folder / name).write_text("not read")
    (folder / "scripts").mkdir()
    result = invoke("whole")
    assert text_of(result) == (
        f"{body}\n\nSkill folder: {folder}\nFiles beside SKILL.md: .hidden, a.py, b.md, scripts/, ملف.txt"
    )
    assert result["_meta"]["fastrpc/facts"] == {
        "name": "whole",
        "folder": str(folder),
        "files": [".hidden", "a.py", "b.md", "scripts/", "ملف.txt"],
        "source": "home",
    }
    assert "structuredContent" not in result


def test_many_files_beside_are_bounded(places: Places) -> None:
    folder = places.put(places.own, "full")
    for number in range(230):
        (folder / f"f{number:03}").touch()
    result = invoke("full")
    assert len(result["_meta"]["fastrpc/facts"]["files"]) == 200
    assert text_of(result).endswith("f199 and 30 more")


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("do $ARGUMENTS now", "a  'b c'", "do a  'b c' now"),
        ("$1-$2-$3", "one 'two words' \"th ree\"", "one-two words-th ree"),
        ("$1 and $2.", "one", "one and ."),
        ("$1", None, ""),
        ("[$ARGUMENTS]", None, "[]"),
        ("$10 $1", "a b c d e f g h i tenth", "tenth a"),
        ("$0 $x ${1} $ARGUMENTSX $100 $-", "a", "$0 $x ${1} $ARGUMENTSX $100 $-\n\nARGUMENTS: a"),
        ("$1 $2", "$2 $ARGUMENTS", "$2 $ARGUMENTS"),
        (r"awk '{print \$1}' $1", "file", "awk '{print $1}' file"),
        (r"\$ARGUMENTS", None, "$ARGUMENTS"),
        ("$1|$2", "don't stop", "don't|stop"),
        ("$1|$2", "C:\\new x", "C:\\new|x"),
        ("$1|$2", '"a # b" #c', "a # b|#c"),
        ("$1|$2", "' ' b", " |b"),
        ("$1|$2", 'مرحبا "أهلا وسهلا"', "مرحبا|أهلا وسهلا"),
        ("no place", "left over", "no place\n\nARGUMENTS: left over"),
        ("no place", "  ", "no place"),
    ],
)
def test_arguments_are_put_into_the_body(
    places: Places, body: str, arguments: str | None, expected: str
) -> None:
    """InvokeSkill: `$ARGUMENTS` and `$1` onwards are replaced."""
    places.put(places.own, "form", body)
    assert text_of(invoke("form", arguments)).partition("\n\nSkill folder: ")[0] == expected


def test_arguments_that_would_make_the_result_huge_are_refused(places: Places) -> None:
    places.put(places.own, "echo", "$ARGUMENTS " * 5000)
    said = error_of(invoke("echo", "x" * 5000))
    assert said == "arguments: too long for a skill that repeats them; 5000 characters came."
    assert len(text_of(invoke("echo", "x" * 100))) > 500_000


def test_a_changed_body_is_read_anew_even_within_one_tick_of_the_clock(places: Places) -> None:
    folder = places.put(places.own, "fresh", "before")
    stamp = os.stat(folder / "SKILL.md").st_mtime_ns
    assert text_of(invoke("fresh")).startswith("before")
    places.put(places.own, "fresh", "behind")
    os.utime(folder / "SKILL.md", ns=(stamp, stamp))
    assert text_of(invoke("fresh")).startswith("behind")


@pytest.mark.parametrize(("age_seconds", "is_read_anew"), [(0, True), (120, False)])
def test_a_description_that_was_half_written_is_read_anew_though_the_clock_has_not_ticked(
    places: Places, monkeypatch: pytest.MonkeyPatch, age_seconds: int, is_read_anew: bool
) -> None:
    """Whoever writes a file empties it first, and a file system's clock ticks every few milliseconds."""
    monkeypatch.setattr(_skills, "SETTLED_NS", 60 * 10**9)
    written = time.time_ns() - age_seconds * 10**9
    described = []
    for text in (b"", ""):
        folder = places.put(places.own, "fresh", text)
        os.utime(folder / "SKILL.md", ns=(written, written))
        described.append(_skills.look().skills["fresh"].description)
    assert described == ["", "About fresh." if is_read_anew else ""]


# ---------------------------------------------------------------------------------------------- names


def test_an_unknown_name_is_answered_with_the_nearest(places: Places) -> None:
    """InvokeSkill: an unknown name is answered with the nearest ones."""
    for name in ("review-code", "review-docs", "Deploy"):
        places.put(places.own, name)
    assert error_of(invoke("review-cod")) == (
        'skill_name: there is no skill "review-cod". The nearest: review-code, review-docs.'
    )
    assert error_of(invoke("deploi")).endswith("The nearest: Deploy.")
    assert error_of(invoke("qqq")).endswith("There are: Deploy, create-skill, review-code, review-docs.")
    assert len(error_of(invoke("x\n\x1b" * 100_000))) < 300


@pytest.mark.parametrize(
    "name",
    ["../secret", "../../secret", "/etc", "secret/../secret", "~", ".", "..", "", "a\0b", "link/inner", "*"],
)
def test_a_name_is_never_a_path(places: Places, name: str) -> None:
    """InvokeSkill: no path outside the skill folders is read: a name is never a path."""
    places.put(places.base, "secret", "SECRET")
    places.put(places.home / ".claude", "secret", "SECRET")
    places.put(places.own / "link", "inner", "SECRET")
    assert "SECRET" not in error_of(invoke(name))
    assert str(places.base / "secret") not in error_of(invoke(name))


def test_an_absolute_path_to_a_skill_is_unknown_too(places: Places) -> None:
    folder = places.put(places.base, "secret", "SECRET")
    assert "SECRET" not in error_of(invoke(str(folder)))


def test_names_are_equal_composed_or_decomposed_and_in_any_case(places: Places) -> None:
    """InvokeSkill: names are equal in NFC and NFD, and in any case."""
    name = "résumé-بَحث"
    decomposed = unicodedata.normalize("NFD", name)
    assert decomposed != name
    places.put(places.own, decomposed, "The body.")
    for asked in (name, decomposed, name.upper(), f" {name} "):
        assert text_of(invoke(asked)).startswith("The body."), asked
    places.put(places.cloned, name, "Nearer.")
    assert text_of(invoke(decomposed)).startswith("Nearer.")
    assert len(names()) == 2


def test_of_two_names_that_differ_in_case_each_is_its_own(places: Places) -> None:
    places.put(places.own, "Fix", "upper")
    places.put(places.own, "fix", "lower")
    assert text_of(invoke("Fix")).startswith("upper")
    assert text_of(invoke("fix")).startswith("lower")
    assert "The nearest" in error_of(invoke("FIX")), "nobody can tell which is meant"


def test_the_front_matters_name_counts_and_the_folders_leads_there_too(places: Places) -> None:
    places.put(places.own, "shown", "The body.", folder="folder-name")
    assert "shown" in names()
    assert text_of(invoke("shown")).startswith("The body.")
    assert text_of(invoke("folder-name")).startswith("The body.")


def test_arabic_marks_and_joined_emoji_pass_unchanged(places: Places) -> None:
    """InvokeSkill: Arabic, combining marks and joined emoji pass unchanged."""
    name, text = "مهارة-👩‍🚀", "السَّلامُ عليكم 👨‍👩‍👧 e\u0301 é"
    places.put(places.own, name, f"---\nname: {name}\ndescription: {text}\n---\n{text} $1")
    assert f"- {name}: {text}" in catalogue()
    assert text_of(invoke(name, "حُرٌّ")).startswith(f"{text} حُرٌّ\n")


# -------------------------------------------------------------------------------------- odd files


def test_without_front_matter_the_folders_name_and_the_first_line_count(places: Places) -> None:
    (places.own / "bare").mkdir(parents=True)
    (places.own / "bare" / "SKILL.md").write_text("\n# A heading\n\nText.\n")
    places.put(places.own, "short", "---\nname: short\n---\n\n## What it does\nMore.")
    assert "- bare: A heading" in catalogue()
    assert "- short: What it does" in catalogue()
    assert text_of(invoke("bare")).startswith("# A heading\n\nText.\n")


def test_a_byte_order_mark_and_windows_line_ends_do_not_count(places: Places) -> None:
    places.put(
        places.own, "win", "\ufeff---\r\nname: win\r\ndescription: Of Windows.\r\n---\r\nOne.\r\nTwo.\r\n"
    )
    assert "- win: Of Windows." in catalogue()
    assert text_of(invoke("win")).startswith("One.\nTwo.\n\nSkill folder")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"---\nname: bad\n---\n\xff\xfe", "it is not UTF-8 (byte 18)"),
        (b"---\nname: bad\ndescription: x\n", "its front matter begins with --- and never ends with ---"),
        (b"---\nname: " + b"n" * 65 + b"\n---\n", "its name has 65 characters, at most 64 are accepted"),
        (b"---\nname: bad\n---\n" + b"x" * 1024 * 1024, "it is larger than 1 MiB"),
    ],
)
def test_a_file_that_cannot_be_used_is_not_listed_and_the_call_says_why(
    places: Places, content: bytes, problem: str
) -> None:
    folder = places.put(places.own, "bad", content)
    assert names() == [BUILT_IN]
    said = error_of(invoke("bad"))
    assert said == f'skill_name: the skill "bad" cannot be used: {folder}/SKILL.md: {problem}.'


def test_a_file_of_just_the_limit_is_given_whole(places: Places) -> None:
    head = "---\nname: big\ndescription: Big.\n---\n"
    places.put(places.own, "big", head + "x" * (1024 * 1024 - len(head)))
    assert "- big: Big." in catalogue()
    assert len(text_of(invoke("big"))) > 1024 * 1024 - 100


def test_bytes_that_end_in_the_middle_of_a_letter_at_the_catalogues_limit_are_no_fault(
    places: Places,
) -> None:
    for shift in range(3):
        places.put(
            places.own, f"s{shift}", f"---\nname: s{shift}\ndescription: D.\n---\n{'x' * shift}{'س€' * 9000}"
        )
    assert names() == [BUILT_IN, "s0", "s1", "s2"]


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "socket"])
def test_what_is_no_regular_file_is_not_opened(places: Places, kind: str) -> None:
    folder = places.own / "odd"
    folder.mkdir(parents=True)
    path = folder / "SKILL.md"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        import socket

        with socket.socket(socket.AF_UNIX) as listener:
            os.chdir(folder)
            listener.bind("SKILL.md")
            os.chdir(places.project)
    assert names() == [BUILT_IN]
    names_it = {"fifo": "a FIFO", "device": "a device", "folder": "a folder", "socket": "a socket"}[kind]
    assert f"it cannot be opened: {names_it}, not a regular file" in error_of(invoke("odd"))


def test_an_unreadable_file_says_so_and_counts_once_it_can_be_read(places: Places) -> None:
    folder = places.put(places.own, "locked", "body")
    real = os.open

    def refuse(path: Any, *more: Any, **options: Any) -> int:
        if str(path).endswith("locked/SKILL.md"):
            raise PermissionError(13, "Permission denied")
        return real(path, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert names() == [BUILT_IN]
        assert f"{folder}/SKILL.md: it cannot be opened: Permission denied" in error_of(invoke("locked"))
    assert names() == [BUILT_IN, "locked"]


def test_a_broken_skill_does_not_hide_a_whole_one(places: Places) -> None:
    places.put(places.cloned, "same", b"---\nname: same\n")
    places.put(places.own, "same", "whole")
    assert text_of(invoke("same")).startswith("whole")


def test_folder_names_that_are_no_text_are_shown_as_far_as_they_can_be(places: Places) -> None:
    odd = os.fsencode(places.own) + b"/odd\xff"
    os.makedirs(odd)
    with open(odd + b"/SKILL.md", "w") as file:
        file.write("Text.")
    with open(odd + b"/file\xfe", "w"):
        pass
    assert "- odd\ufffd: Text." in catalogue()
    result = invoke("odd\ufffd")
    assert result["_meta"]["fastrpc/facts"]["files"] == ["file\ufffd"]


# ---------------------------------------------------------------------------------------------- links


def test_a_link_of_the_users_own_is_followed(places: Places) -> None:
    elsewhere = places.put(places.base / "dotfiles", "shared", "From elsewhere.")
    places.own.mkdir(parents=True)
    (places.own / "shared").symlink_to(elsewhere)
    (places.own / "single").mkdir()
    (places.own / "single" / "SKILL.md").symlink_to(elsewhere / "SKILL.md")
    assert text_of(invoke("shared")).startswith("From elsewhere.")
    places.home.joinpath(".claude").rename(places.base / "moved")
    places.home.joinpath(".claude").symlink_to(places.base / "moved")
    assert text_of(invoke("shared")).startswith("From elsewhere.")


@pytest.mark.parametrize("shape", ["folder", "file", "place", "dots"])
def test_a_link_out_of_a_cloned_project_is_refused(places: Places, shape: str) -> None:
    """InvokeSkill: a link out of a cloned project is refused."""
    outside = places.put(places.base / "outside", "stolen", "SECRET of outside")
    inside = places.cloned
    if shape == "place":
        inside.parent.mkdir()
        inside.symlink_to(places.base / "outside")
    else:
        inside.mkdir(parents=True)
        if shape == "file":
            (inside / "stolen").mkdir()
            (inside / "stolen" / "SKILL.md").symlink_to(outside / "SKILL.md")
        else:
            target = outside if shape == "folder" else "../../../outside/stolen"
            (inside / "stolen").symlink_to(target)
    assert names() == [BUILT_IN]
    said = error_of(invoke("stolen"))
    assert "a link leads out of the project" in said
    assert "SECRET" not in said


def test_a_link_within_the_project_is_followed(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    places.put(places.project / "skills", "inner", "Inside.")
    sub = places.project / "sub"
    (sub / ".claude" / "skills").mkdir(parents=True)
    (sub / ".claude" / "skills" / "inner").symlink_to("../../../skills/inner")
    monkeypatch.chdir(sub)
    assert text_of(invoke("inner")).startswith("Inside.")
    (places.project / ".git").rmdir()  # now the working directory alone is the project
    assert "a link leads out" in error_of(invoke("inner"))


def test_a_home_folder_under_version_control_does_not_widen_a_project(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places.home / ".git").mkdir()
    (places.home / ".ssh").mkdir()
    (places.home / ".ssh" / "id").write_text("SECRET key")
    skill = places.home / "download" / ".claude" / "skills" / "s"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").symlink_to("../../../../.ssh/id")
    monkeypatch.chdir(places.home / "download")
    assert "a link leads out" in error_of(invoke("s"))


@pytest.mark.parametrize("turn", [1, 2])
def test_a_link_put_in_the_way_between_look_and_reading_is_refused(places: Places, turn: int) -> None:
    """Once while the catalogue is made, once while the skill is read.

    InvokeSkill: a link that is put in the way between look and reading is refused.
    """
    outside = places.put(places.base / "outside", "flip", "---\nname: flip\ndescription: SECRET\n---\nSECRET")
    folder = places.put(places.cloned, "flip", "honest")
    os.utime(folder / "SKILL.md", (1e9, 1e9))  # what is new is read anew by the second look
    real = os.path.realpath
    turns = 0

    def flip(path: Any, **options: Any) -> str:
        nonlocal turns
        found = real(path, **options)
        if str(path).endswith("flip/SKILL.md"):
            turns += 1
            if turns == turn:
                folder.rename(places.base / "away")
                folder.symlink_to(outside)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os.path, "realpath", flip)
        found = _skills.look()
        said = error_of(invoke("flip")) if turn == 2 else found.broken["flip"].problem
    assert "it cannot be opened" in said
    assert "SECRET" not in said + _skills.as_text(found)


def test_in_the_home_folder_the_skills_are_the_users_own(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = places.put(places.base / "dotfiles", "mine", "Mine.")
    places.own.mkdir(parents=True)
    (places.own / "mine").symlink_to(elsewhere)
    monkeypatch.chdir(places.home)
    assert invoke("mine")["_meta"]["fastrpc/facts"]["source"] == "home"


def test_nothing_but_skill_files_is_opened(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """InvokeSkill: nothing but skill files is opened."""
    folder = places.put(places.own, "one", "body")
    (folder / "notes.md").write_text("x")
    places.put(places.cloned, "two", "body")
    opened = []
    real = os.open

    def note(path: Any, *more: Any, **options: Any) -> int:
        opened.append(os.fspath(path))
        return real(path, *more, **options)

    monkeypatch.setattr(os, "open", note)
    catalogue = _skills.look()
    for name in ("one", "two"):
        _skills.read(catalogue.skills[name])
    files = {path for path in opened if not os.path.isdir(path) and path.endswith(".md")}
    assert files <= {f"{folder}/SKILL.md", "SKILL.md", f"{_skills.BUILT_IN}/{BUILT_IN}/SKILL.md"}


def test_a_working_directory_that_is_gone_leaves_the_users_skills(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.put(places.own, "mine")
    gone = places.base / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert names() == [BUILT_IN, "mine"]
    monkeypatch.chdir(places.base)


# --------------------------------------------------------------------------------------- front matter


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("description: plain text", "plain text"),
        ("description: Use when: a colon stands there", "Use when: a colon stands there"),
        ("description: see https://a.example/b#c # a comment", "see https://a.example/b#c"),
        ("description: goes on\n  over two\n  lines: three", "goes on over two lines: three"),
        ('description: "quoted: \\"yes\\" \\u0633" # c', 'quoted: "yes" س'),
        ("description: 'it''s'", "it's"),
        ('description: "over\n  lines\\\n  joined"', "over linesjoined"),
        ("description: '/a: x', '/b'", "'/a: x', '/b'"),
        ('description: "never closed', '"never closed'),
        ("description: >-\n  folded # text\n  goes on\n\n  more", "folded # text goes on more"),
        ("description: |\n  one\n  two", "one two"),
        ("description: > # comment\n  text", "text"),
        ("description: >ok", ">ok"),
        ("# description: no\ndescription: yes", "yes"),
        ("metadata:\n  description: inner\ndescription: outer", "outer"),
        ("allowed-tools:\n- Bash\n- Read\ndescription: after a list", "after a list"),
        ("allowed-tools: [Bash, Read]\ndescription: after", "after"),
        ('"description": quoted key', "quoted key"),
        ("description: one\ndescription: two", "two"),
        ("description: what people write\nat the margin", "what people write at the margin"),
        ("description:\n  on the next line", "on the next line"),
        ("description: 'C:\\new'", "C:\\new"),
        ('description: "\\U0001F680 \\xe9 \\q"', "🚀 é q"),
        ("description:nospace", None),
        ("description: ", ""),
    ],
)
def test_front_matter_is_read_as_people_write_it(lines: str, expected: str | None) -> None:
    """InvokeSkill: a skill is a folder with `SKILL.md`: front matter with `name` and `description`, then the
    body.
    """
    keys, body = _front_matter.split(f"---\nname: x\n{lines}\nlicense: MIT\n---\nBody: text\n")
    if expected is None:
        assert "description" not in keys
    else:
        assert " ".join(keys["description"].split()) == expected
        assert keys["license"] == "MIT"
    assert keys["name"].split()[0] == "x"
    assert body == "Body: text\n"


def test_a_rule_in_the_body_is_no_second_end() -> None:
    assert _front_matter.split("---\na: b\n---\none\n---\ntwo")[1] == "one\n---\ntwo"
    assert _front_matter.split("text\n---\na: b\n---\n") == ({}, "text\n---\na: b\n---\n")


def test_the_built_in_skill_is_whole(places: Places) -> None:
    """InvokeSkill: `create-skill` is built in."""
    text = text_of(invoke(BUILT_IN, "a skill for releases"))
    assert "What the user asked for: a skill for releases\n" in text
    assert "$ARGUMENTS" not in text
    assert f"Skill folder: {_skills.BUILT_IN}/{BUILT_IN}" in text


def test_looking_imports_no_module_that_costs() -> None:
    code = (
        "import sys; from fastrpc.tools.agent import _skills; before = set(sys.modules);"
        "_skills.as_text(_skills.look()); print(sorted(set(sys.modules) - before))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert out.stdout.strip() == "[]"
