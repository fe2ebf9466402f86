"""The prompts summarize-document, draft-email, extract-action-items, research-topic, in English and Arabic.

Their names and `documentUri` are published. `language` is the language of the answer, and of the prompt if it
is Arabic; without it the option --language applies. Untrusted text is enclosed (`_outside`), and the prompt
says that nothing in it is an instruction.
"""

from __future__ import annotations

from fastrpc import ArgumentError, Context

from . import _outside, _readers, _settings
from ._prompt_words import ARABIC, ENGLISH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Annotated, Literal

    from fastrpc import Server

    from ._prompt_words import Words
else:
    from fastrpc.typing_forms import Annotated, Literal

ARABIC_NAMES = ("ar", "arabic", "عربي", "العربية", "عربية")
ENGLISH_NAMES = ("en", "english")
LONGEST_VALUE = 200
LONGEST_TOPIC = 2000


def attach(server: Server) -> None:
    """Serve the prompts, and complete their arguments."""
    for name, function in PROMPTS.items():
        server.prompt(name=name, run="thread")(function)
    for name in ("summarize-document", "extract-action-items"):
        server.complete(name, "documentUri", run="thread")(_uris)
    for name in PROMPTS:
        server.complete(name, "language")(_languages)


def summarize_document(
    ctx: Context,
    documentUri: Annotated[str, "The URI of the document, or of an entry of the memory"],
    length: Literal["short", "medium", "long"] = "medium",
    language: Annotated[str, "Of the summary: en, ar, or any other"] = "",
) -> str:
    """Summarize a document."""
    words, extra = _words(language)
    return "\n\n".join(
        [words.summarize + " " + words.lengths[length], *extra, _document(ctx, documentUri, words)]
    )


def draft_email(
    ctx: Context,
    context: Annotated[str, "What the mail is about: notes, or the mail that it answers"],
    to: Annotated[str, "Who receives it"] = "",
    tone: Annotated[str, "How it sounds: friendly, formal, firm"] = "",
    language: Annotated[str, "Of the mail: en, ar, or any other"] = "",
) -> str:
    """Draft an email based on context."""
    words, extra = _words(language)
    wishes = [
        form.format(_line(name, value))
        for name, form, value in (("to", words.recipient, to), ("tone", words.tone, tone))
        if value.strip()
    ]
    return "\n\n".join([" ".join([words.email, *wishes]), *extra, _quoted("context", context, words)])


def extract_action_items(
    ctx: Context,
    documentUri: Annotated[str, "The URI of the transcript; or give its text"] = "",
    transcript: Annotated[str, "The text of the transcript"] = "",
    language: Annotated[str, "Of the list: en, ar, or any other"] = "",
) -> str:
    """Pull action items from a meeting transcript."""
    if bool(documentUri.strip()) == bool(transcript.strip()):
        raise ArgumentError(
            f"expected documentUri or transcript, got {'both' if transcript.strip() else 'neither'}."
        )
    words, extra = _words(language)
    source = _document(ctx, documentUri, words) if documentUri else _quoted("transcript", transcript, words)
    return "\n\n".join([words.action_items, *extra, source])


def research_topic(
    ctx: Context,
    topic: Annotated[str, "What to find out"],
    depth: Literal["overview", "standard", "deep"] = "standard",
    language: Annotated[str, "Of the report: en, ar, or any other"] = "",
) -> str:
    """Research a topic in several sources."""
    words, extra = _words(language)
    if len(topic) > LONGEST_TOPIC:
        raise ArgumentError(f"topic: expected at most {LONGEST_TOPIC:,} characters, got {len(topic):,}.")
    if not topic.strip():
        raise ArgumentError("topic: expected a text, got an empty one.")
    asked = _outside.defanged(topic.strip())
    return "\n\n".join([words.research.format(asked), words.depths[depth], *extra, words.research_rules])


PROMPTS: dict[str, Callable[..., str]] = {
    "summarize-document": summarize_document,
    "draft-email": draft_email,
    "extract-action-items": extract_action_items,
    "research-topic": research_topic,
}


def _words(language: str) -> tuple[Words, list[str]]:
    """Return the texts of the prompt, and, for a language without prompt texts, the sentence that asks the
    model to answer in it."""
    wanted = " ".join((language or _settings.LANGUAGE.read()).split())
    if wanted.casefold() in ARABIC_NAMES:
        return ARABIC, []
    if not wanted or wanted.casefold() in ENGLISH_NAMES:
        return ENGLISH, []
    return ENGLISH, [ENGLISH.language.format(_line("language", wanted))]


def _document(ctx: Context, uri: str, words: Words) -> str:
    name, text = _outside.read_text(uri.strip(), _readers.reader_of(ctx))
    source = uri if name in uri else f"{name} ({uri})"
    return f"{words.is_data}\n\n{_outside.enclosed(text, source, words.left_out)}"


def _quoted(name: str, text: str, words: Words) -> str:
    if not text.strip():
        raise ArgumentError(f"{name}: expected a text, got an empty one.")
    return f"{words.is_data}\n\n{_outside.enclosed(text, name, words.left_out)}"


def _line(name: str, text: str) -> str:
    """Return a short value for a sentence. Raises ArgumentError for one that is too long."""
    line = " ".join(text.split())
    if len(line) > LONGEST_VALUE:
        raise ArgumentError(f"{name}: expected at most {LONGEST_VALUE} characters, got {len(line):,}.")
    return _outside.defanged(line)


def _uris(value: str, ctx: Context) -> list[str]:
    return _outside.uris(_readers.reader_of(ctx), value)


def _languages(value: str) -> list[str]:
    return [each for each in ("en", "ar") if each.startswith(value.casefold())]
