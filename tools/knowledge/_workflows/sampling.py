"""Prompts of runs for the model of the client that has triggered the run, while its call waits for the end.

A step adds a question here and waits. The waiting call checks for questions and passes them to its client. A
client of 2026-07-28 gets them as the result of its call, and repeats the call. So the questions outlast the
call, for as long as a client may take to answer. Everything runs in the server's event loop.
"""

from __future__ import annotations

import asyncio

from fastrpc import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc import Context

ANSWER_SECONDS = 600.0


class Question:
    """A prompt that waits for an answer. `key` stays the same each time the client is asked."""

    def __init__(self, key: str, params: dict[str, Any]) -> None:
        self.key = key
        self.params = params
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()


class Asker:
    """The questions of one run, as long as the client that has triggered it waits."""

    def __init__(self) -> None:
        self._questions: list[Question] = []
        self._count = 0

    async def ask(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the client's answer to a request (MCP: sampling/createMessage). Raises ToolError."""
        self._count += 1
        question = Question(f"prompt {self._count}", params)
        self._questions.append(question)
        try:
            return await asyncio.wait_for(question.answer, ANSWER_SECONDS)
        except asyncio.TimeoutError:
            raise ToolError("the client that has triggered the run has not answered") from None
        finally:
            self._questions.remove(question)

    async def pass_on(self, ctx: Context) -> None:
        """Send the questions to the client of a call. Raises the exception that ends the call until the
        client has answered."""
        for each in list(self._questions):
            if each.answer.done():
                continue
            try:
                sample = await ctx.sample(
                    each.params["messages"],
                    key=each.key,
                    max_tokens=each.params["maxTokens"],
                    system_prompt=each.params.get("systemPrompt"),
                )
            except ToolError as error:
                _settle(each, error=error)
            else:
                _settle(
                    each,
                    {
                        "role": "assistant",
                        "content": {"type": "text", "text": sample.text},
                        "model": sample.model,
                    },
                )

    def end(self) -> None:
        """Fail all questions, since the client no longer waits."""
        for each in self._questions:
            _settle(each, error=ToolError("the client that has triggered the run waits for it no more"))


_askers: dict[str, Asker] = {}


def asker_of(run: str) -> Asker | None:
    """Return the questions of a run whose client waits and has a model; None otherwise."""
    return _askers.get(run)


def open_for(run: str, ctx: Context) -> Asker | None:
    """Return the questions of a run for which a call waits; None if its client has no model."""
    if "sampling" not in ctx.client_capabilities:
        return None
    return _askers.setdefault(run, Asker())


def close(run: str) -> None:
    """The call has ended: fail the open questions of the run."""
    asker = _askers.pop(run, None)
    if asker is not None:
        asker.end()


def _settle(question: Question, answer: dict[str, Any] | None = None, error: ToolError | None = None) -> None:
    if question.answer.done():
        return
    if answer is not None:
        question.answer.set_result(answer)
    elif error is not None:
        question.answer.set_exception(error)
