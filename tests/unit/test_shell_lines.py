"""Which command lines only read: every way past the parser or the table that is known, and what has to pass.

A line here is never run.
"""

from __future__ import annotations

import pytest
from support.shell_lines import (
    BEHIND_A_NEWLINE,
    HARMLESS,
    KNOWN_TO_ONE_READING,
    MULTILINE,
    NOT_HARMLESS,
    NOT_UNDERSTOOD,
    ODD,
)

from fastrpc.guard.shell import git, harmless, lexer, parser, programs
from fastrpc.guard.shell.harmless import only_reads


@pytest.mark.parametrize("line", [*NOT_UNDERSTOOD, *ODD])
def test_what_is_more_than_simple_commands_is_not_understood(line: str) -> None:
    assert lexer.read(line) is None
    assert parser.commands(line) is None
    assert not only_reads(line)


@pytest.mark.parametrize("line", [*NOT_HARMLESS, *BEHIND_A_NEWLINE])
def test_what_may_write_or_run_something_is_not_harmless(line: str) -> None:
    assert not only_reads(line)


@pytest.mark.parametrize(
    "line", ["cat /dev/zero", "head -c 5 /dev/sda", "wc -c ///dev/../dev/tty", "ls; cat /proc/kmsg"]
)
def test_what_reads_a_device_is_not_harmless(line: str) -> None:
    assert not only_reads(line)
    assert only_reads(line.replace("/dev/", "/tmp/").replace("/proc/", "/tmp/"))


@pytest.mark.parametrize("line", [*HARMLESS, *MULTILINE])
def test_what_only_reads_is_harmless(line: str) -> None:
    assert only_reads(line)


@pytest.mark.parametrize("line", KNOWN_TO_ONE_READING)
def test_what_one_of_the_two_readings_does_not_know_is_not_understood(line: str) -> None:
    assert lexer.read(line) is not None
    assert parser.commands(line) is None
    assert not only_reads(line)


@pytest.mark.parametrize(
    "line",
    [
        *("echo 'a b'", "echo ab", "echo a b c", "echo", "echo a; b"),
        *("echo a b > f", "echo a b 2>&1f", "echo a b < f", "echo a b <<< f", "> f echo a b"),
        *(
            "(echo a b)",
            "{ echo a b; }",
            "! echo a b",
            "echo a b &",
            "X=1 echo a b",
            "if echo a b; then x; fi",
        ),
        *("f() { echo a b; }", "echo a b; (", "echo a b; $(x)", "echo a b |& x"),
    ],
)
def test_a_tree_that_says_something_else_than_the_words_is_not_believed(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [lexer.Word(word, word, False) for word in ("echo", "a", "b")]
    monkeypatch.setattr(parser, "read", lambda line: [words])
    assert parser.commands("echo a b") is not None
    assert parser.commands("echo a b >/dev/null # x") is not None
    assert parser.commands(line) is None


def test_commands_are_words_as_a_program_gets_them_in_their_order() -> None:
    found = parser.commands("""a 'b c' "d\\"e"f\\ g | h src/*.py && i; 'j' 2>&1 # k""")
    assert found is not None
    assert [[word.text for word in command] for command in found] == [
        ["a", "b c", 'd"ef g'],
        ["h", "src/*.py"],
        ["i"],
        ["j"],
    ]
    assert [word.written for command in found for word in command if word.is_pattern] == ["src/*.py"]


WRITES = {
    "date": "set",
    "diff": "paginate",
    "file": "compile files-from magic-file preserve-date uncompress uncompress-noreport",
    "hostname": "boot file",
    "jq": "from-file library-path",
    "rg": "hostname-bin pre search-zip",
    "sort": "compress-program files0-from output temporary-directory",
    "tail": "follow retry",
    "tree": "fromfile output",
}
# --textconv is not among them: the subcommands that know it know --text, too, which is taken then.
GIT_WRITES = """
config-env contents delete edit-description exec exec-path ext-diff filters force fork-point help
local-user no-track open-files-in-pager output paginate parseopt recurse-submodules set-upstream-to
show-signature sign track unset-upstream
"""


@pytest.mark.parametrize("name", WRITES)
def test_no_option_is_the_beginning_of_one_that_writes(name: str) -> None:
    """Programs take the beginning of a long option for the whole, as far as they have no other one."""
    for option in WRITES[name].split():
        assert not any(option.startswith(allowed) for allowed in programs.PROGRAMS[name].long), option


@pytest.mark.parametrize("name", git.SUBCOMMANDS)
def test_no_option_of_git_is_the_beginning_of_one_that_writes(name: str) -> None:
    for option in GIT_WRITES.split():
        assert not any(option.startswith(allowed) for allowed in git.SUBCOMMANDS[name].long), option


def test_a_program_has_one_entry() -> None:
    assert not programs.PROGRAMS.keys() & (harmless.SPECIAL.keys() - {"date", "jq", "tail"})


@pytest.mark.parametrize("line", ["sed -n 5p", "sed -n 5p file", "sed -n '1,$p' a b", "ls | sed -n 2,4p"])
def test_sed_may_print_lines_by_their_numbers(line: str) -> None:
    assert only_reads(line)


@pytest.mark.parametrize(
    "line", ["sed", "sed -n", "sed 5p file", "sed -n 5d file", "sed -n 5p -i file", "sed -n w"]
)
def test_sed_may_do_nothing_else(line: str) -> None:
    assert not only_reads(line)
