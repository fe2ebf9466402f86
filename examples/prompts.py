"""Prompts and completion: texts that a person picks in the client, with arguments that fill in themselves.

Serve with `fastrpc serve examples/prompts.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastrpc import Message, Server
from fastrpc.definitions.completion import matching

app = Server("prompts", version="1.0")

FILES = {"python": ["app.py", "setup.py"], "c": ["main.c", "main.h"]}


@app.prompt
def explain(topic: str) -> str:
    """Explain a topic in three sentences."""
    return f"Explain {topic} in three sentences."


@app.prompt(title="Code review")
def review(
    language: Literal["python", "c"],
    file: Annotated[str, "The file to look at"],
    strict: bool = False,
) -> list[Message]:
    """Review a file."""
    tone = "Be strict." if strict else "Be kind."
    return [
        Message("user", f"Review the {language} file {file}. {tone}"),
        Message("assistant", "I begin with what is hard to undo."),
    ]


@app.complete(review, "file")
def files(value: str, arguments: dict[str, str]) -> list[str]:
    """Suggest the files of the language that was chosen; `language` and `strict` complete by themselves."""
    return matching(value, FILES.get(arguments.get("language", ""), []))


if __name__ == "__main__":
    app.run()
