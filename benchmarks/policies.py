"""The policies that W14-guarded and W15 put before `servers/echo.py`, written as files of the guard.

Each allows the tools of the file, with a rate that nobody reaches, and keeps the audit log as it is kept by
default; `rule-only` keeps none, so that a rule is measured and not the log. They are written where they are
needed: a token's file must be its owner's alone.
"""

from __future__ import annotations

import os

ALLOWED = """
[expose]
tools = ["echo", "add", "pay*", "sleep*"]
rate = "999999999/second"

[risk]
"*" = "low"
"""
TOKENS = """
[[tokens]]
id = "bench"
token = "file:token"
"""
ABOUT_ECHO = ('args.text.startsWith("drop ")', "args.text.size() > 4000000", 'args.text == "root"')
ABOUT_OTHERS = 97


def rule(number: int, tool: str, when: str) -> str:
    return f'[[rules]]\nid = "rule-{number}"\ntools = ["{tool}"]\nwhen = \'{when}\'\nthen = "deny"\n'


def texts() -> dict[str, str]:
    """Return the text of each policy, by its name."""
    others = [rule(number, "add", f"args.a == {number}") for number in range(ABOUT_OTHERS)]
    about_echo = [rule(ABOUT_OTHERS + number, "echo", when) for number, when in enumerate(ABOUT_ECHO)]
    return {
        "plain": ALLOWED,
        "http": ALLOWED + TOKENS,
        "rule": ALLOWED + about_echo[0],
        "rule-only": ALLOWED + about_echo[0] + '[audit]\nmode = "off"\n',
        "rules": ALLOWED + "".join([*others, *about_echo]),
    }


def write(folder: str, token: str) -> dict[str, str]:
    """Write the policies and the file `token` into a folder; return their paths, by name."""
    os.makedirs(folder, exist_ok=True)
    files = {name: os.path.join(folder, f"guard-{name}.toml") for name in texts()}
    for name, text in texts().items():
        with open(files[name], "w", encoding="utf-8") as file:
            file.write(text)
    files["token"] = os.path.join(folder, "token")
    descriptor = os.open(files["token"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{token}\n")
    return files
