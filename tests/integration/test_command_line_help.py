"""Help has one form for every command, and a mistake is one line that says what was meant."""

from __future__ import annotations

import re
import shlex

import pytest
from support.command_line import assert_mistake, run
from support.terminal import on_terminal

from fastrpc.__main__ import main
from fastrpc.cli import COMMANDS, GROUPS
from fastrpc.command_line import fitted_examples

ACTIONS = (
    *("approvals list", "approvals approve", "approvals edit", "approvals watch"),
    *("audit tail", "audit search", "audit export", "audit verify", "audit prove", "audit check"),
    *("token create", "token list", "token rotate", "token revoke"),
    *("guard init", "guard check", "guard try", "guard why"),
    *("budgets list", "budgets reset", "gateway status"),
)


def test_help_names_every_command_and_each_command_has_help_with_examples(place):
    whole = run(place, "--help")
    assert whole.returncode == 0
    assert "examples:" in whole.stdout
    for command in COMMANDS:
        assert f"\n  {command} " in whole.stdout
        one = run(place, command, "--help")
        assert one.returncode == 0
        assert one.stderr == ""
        assert one.stdout.startswith(f"usage: fastrpc {command}")
        assert f"  fastrpc {command}" in one.stdout.partition("examples:")[2]


def test_a_bare_command_shows_the_help_and_the_help_has_every_command_once(place):
    bare = run(place)
    assert bare.returncode == 0
    assert bare.stdout == run(place, "--help").stdout
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    for toolset, command in (("contracts", "install"), ("knowledge", "import"), ("state", "show")):
        assert re.search(rf"\n  {toolset} [^:]*:?\s*{command}", bare.stdout)


@pytest.mark.parametrize("columns", [40, 50, 60, 80])
@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_the_help_fits_a_narrow_terminal(place, monkeypatch, capsys, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "\nexamples:\n" in shown
    quoted = re.compile(r"\s+'[^']*'( \\)?")  # a word that a shell must find as it is
    too_long = [line for line in shown.splitlines() if len(line) > columns and not quoted.fullmatch(line)]
    assert too_long == []


def test_an_example_that_is_wrapped_is_the_same_command(monkeypatch):
    line = "  fastrpc call my_tools.py word_count text='to be or not' loud=true      what it does"
    monkeypatch.setenv("COLUMNS", "40")
    *command, comment = fitted_examples([line]).splitlines()
    assert all(len(part) <= 40 for part in command)
    assert len(command) == 2
    assert comment == "      what it does"
    assert shlex.split("\n".join(command).replace("\\\n", "")) == shlex.split(line.partition("      ")[0])


@pytest.mark.parametrize("command", ACTIONS)
def test_an_action_has_its_own_help(place, monkeypatch, capsys, command):
    name, action = command.split()
    monkeypatch.setenv("COLUMNS", "100")
    shown = {}
    for words in ([name], [name, action]):
        assert main([*words, "--help"]) == 0
        shown[len(words)] = capsys.readouterr().out
    assert main(["help", name, action]) == 0
    assert capsys.readouterr().out == shown[2]
    assert shown[2].startswith(f"usage: fastrpc {command}")
    assert shown[2] != shown[1]
    examples = shown[2].partition("\nexamples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith(f"  fastrpc {command}") for line in examples)
    assert "ACTION" not in shown[2]
    assert f"for {action}: " not in shown[2]


def test_the_help_of_an_action_has_its_options_and_no_others(place, capsys):
    assert main(["token", "rotate", "--help"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"\n  (-[^ ]+)", shown) == ["-h,", "--overlap", "--database", "--json"]
    assert "\n  ID " in shown


@pytest.mark.parametrize("words", [["--help"], ["serve", "--help"], ["list", "--help"], ["knowledge"]])
def test_help_is_coloured_on_a_terminal_that_takes_it(place, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    plain = run(place, *words).stdout
    assert "\x1b" not in plain
    assert "\x1b[1musage:\x1b[0m" in run(place, *words, FORCE_COLOR="1").stdout
    assert run(place, *words, FORCE_COLOR="1", NO_COLOR="1").stdout == plain
    for more, is_coloured in ({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False):
        with on_terminal(place, *words, shows_output=True, **more) as there:
            shown = there.rest().replace("\r\n", "\n")
        assert ("\x1b[1musage:\x1b[0m" in shown) is is_coloured
        assert re.sub(r"\x1b\[\d*m", "", shown) == plain


@pytest.mark.parametrize("command", [*COMMANDS, "state", "search-check"])
def test_the_help_of_every_command_has_one_form(place, command):
    shown = run(place, command, "--help").stdout
    assert run(place, "help", command).stdout == shown
    usage, *_, examples = shown.split("\n\n")
    assert usage.startswith(f"usage: fastrpc {command}")
    assert "\n  -h, --help " in shown
    assert re.search(r"\n  -h, --help +show this\n", shown)
    assert examples.startswith("examples:\n  ")
    assert not [line for line in shown.splitlines() if len(line) > 110]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["srve"], "unknown command 'srve'; did you mean 'serve'?"),
        (["zzzz"], "unknown command 'zzzz'; the commands are serve, new"),
        (["run", "shop.py"], "unknown command 'run'; here it is 'fastrpc serve FILE'"),
        (["ls"], "unknown command 'ls'; here it is 'fastrpc list'"),
        (["read"], "here it is 'fastrpc call TARGET URI'"),
        (["install"], "unknown command 'install'; here it is 'fastrpc install-client'"),
        (["init"], "unknown command 'init'; here it is 'fastrpc new NAME'"),
        (["version"], "here it is 'fastrpc --version'"),
        (["resources"], "here it is 'fastrpc list'"),
        (["prompts"], "here it is 'fastrpc list'"),
        (["words.py", "--name", "x"], "unknown command 'words.py'; here it is 'fastrpc serve words.py'"),
        (["words.py:app"], "here it is 'fastrpc serve words.py:app'"),
        (["words"], "here it is 'fastrpc serve words.py'"),
        (["mcp.json"], "here it is 'fastrpc gateway mcp.json'"),
        (["https://example.com/mcp"], "here it is 'fastrpc list https://example.com/mcp'"),
        (["serve", "words.py", "--port", "8000"], "here it is 'fastrpc serve --http 127.0.0.1:PORT'"),
        (["serve", "words.py", "--port=8000"], "here it is 'fastrpc serve --http 127.0.0.1:PORT'"),
        (["serve", "--reload", "words.py"], "here it is 'fastrpc dev FILE'"),
        (["--http", "127.0.0.1:0"], "here it is 'fastrpc serve --http HOST:PORT'"),
        (["approvals", "--jsno"], "unknown option '--jsno'; did you mean '--json'?"),
        (["audit", "--floder", "x"], "unknown option '--floder'; did you mean '--folder'?"),
        (["list", "--time-limit", "0", "words.py"], "--time-limit: expected a number of seconds above 0"),
        (["help", "srve"], "unknown command 'srve'; did you mean 'serve'?"),
        (["config", "--show"], "unknown option '--show' (see 'fastrpc config --help')"),
        (["state", "--shwo"], "unknown option '--shwo'; did you mean '--show'?"),
        (
            ["serve", "words.py", "--http", "8000"],
            "HOST:PORT, [IPV6]:PORT or unix:PATH, got '8000'; did you mean 127.0.0.1:8000?",
        ),
        (["serve", "words.py", "--http", ":80"], "got ':80'; did you mean 127.0.0.1:80?"),
        (["--versoin"], "did you mean '--version'?"),
        (["serve", "--trase", "x"], "unknown option '--trase'; did you mean '--trace'?"),
        (["serve", "--log-levle=info"], "unknown option '--log-levle'; did you mean '--log-level'?"),
        (["serve", "--name"], "--name needs a value"),
        (
            ["serve", "--drain-seconds", "soon"],
            "--drain-seconds: expected a number of seconds, 0 or more, got 'soon'",
        ),
        (["serve", "--drain-seconds=nan"], "--drain-seconds: expected a number of seconds"),
        (["worker", "words.py", "--drain-seconds=nan"], "--drain-seconds: expected a number of seconds"),
        (["worker", "words.py", "--drain-seconds=-5"], "--drain-seconds: expected a number of seconds"),
        (["serve", "--max-in-flight", "0"], "--max-in-flight: expected a whole number from 1 up"),
        (["serve", "--log-level", "loud"], "--log-level: expected one of debug"),
        (["serve", "--cwd", "/no/such/folder"], "--cwd /no/such/folder: No such file or directory"),
        (["serve", "--trace", "/no/such/folder/x"], "--trace /no/such/folder/x: No such file"),
        (["serve", "missing.py"], "missing.py"),
        (["serve", "no_such_module_anywhere"], "no_such_module_anywhere"),
        (["serve", "words.py", "words.py"], "word_count"),
        (["tools", "missing.py"], "missing.py"),
        (["tools", "--jsno"], "did you mean '--json'?"),
        (["config", "more"], "more: no such module"),
        (["call"], "a tool's name is needed"),
        (["call", "fail", "--json", "{", "--target", "words.py"], "--json: "),
        (["call", "fail", "--json", "[1]", "--target", "words.py"], "--json: expected an object, got list"),
        (["call", "fail", "--json", "{}", "reason=x", "--target", "words.py"], "either --json or key=value"),
        (["call", "fail", "--arguments", "x", "--target", "words.py"], "--arguments: "),
        (["call", "fial", "reason=x", "--target", "words.py"], "no tool 'fial'; did you mean 'fail'?"),
        (
            ["call", "fail", "raeson=x", "--target", "words.py"],
            "no argument 'raeson'; did you mean 'reason'?",
        ),
        (["call", "fail", "reason", "--target", "words.py"], "expected key=value, got 'reason'"),
        (["call", "word_count", "text=x", "times=many", "--target", "words.py"], "times: expected integer"),
        (["call", "fail", "reason=x", "--target", "missing.py"], "missing.py"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(place, words, arguments, said):
    assert_mistake(run(place, *arguments), said)


@pytest.mark.parametrize("code", ["def broken(", "import no_such_module", "1/0", "x = 1"])
def test_a_target_that_cannot_be_loaded_is_one_line_and_exit_code_2(place, code):
    (place / "broken.py").write_text(code)
    assert_mistake(run(place, "serve", "broken.py"), "broken.py")
