"""The settings of the agent's tools, declared in the order in which they are shown.

A tool reads a setting when it needs it, from the environment, where the server has put the effective value.
Imports no tool.
"""

from __future__ import annotations

import os

from fastrpc.settings import Setting

STREAMING = Setting(
    "STREAMING", "flag", True, "send output as progress while a tool runs, if the call asks", after="TOOLS"
)

ADDITIONAL_SKILLS = Setting(
    "ADDITIONAL_SKILLS", "folders", (), "more folders with skills, separated by commas", after="MODEL"
)
SKILLS = Setting("SKILL_*", "flag", True, "one skill, on or off")
PLAN_ENFORCE = Setting(
    "PLAN_ENFORCE", "guard", False, "refuse tools that write or execute while plan mode is on"
)

PATIENCE_SECONDS = Setting(
    "FASTRPC_PATIENCE_SECONDS",
    "seconds",
    55.0,
    "no call lasts longer than this; 0: no limit",
    after="FASTRPC_STATE_DIR",
)
RESULT_CHARACTERS = Setting(
    "FASTRPC_RESULT_CHARACTERS", "count", 30_000, "a tool's result stays below so many characters"
)
RESULT_TOKENS = Setting("FASTRPC_RESULT_TOKENS", "count", 20_000, "and about so many tokens")
OUTPUT_FILE_BYTES = Setting(
    "FASTRPC_OUTPUT_FILE_BYTES", "bytes", 256 * 1024**2, "the most that one output's file holds"
)
STRUCTURED = Setting(
    "FASTRPC_STRUCTURED", "flag", False, "send the facts of each result as structuredContent"
)

REACH = Setting(
    "FASTRPC_REACH",
    "reach",
    (),
    "what tools may fetch: public, all, or more networks; unset: public over HTTP, else all",
    after="FASTRPC_HTTP_SESSION_SECONDS",
)
IMAGE_FILE_BYTES = Setting("FASTRPC_IMAGE_FILE_BYTES", "bytes", 256 * 1024**2, "no longer image file is read")
IMAGE_MEMORY_BYTES = Setting(
    "FASTRPC_IMAGE_MEMORY_BYTES", "bytes", 1024**3, "the memory that decoding an image may take"
)
IMAGE_SECONDS = Setting(
    "FASTRPC_IMAGE_SECONDS", "count", 10, "the processor time that decoding an image may take"
)
BROWSER = Setting("FASTRPC_BROWSER", "program", "", "the browser that renders web pages")
BROWSER_SANDBOX = Setting("FASTRPC_BROWSER_SANDBOX", "guard", True, "the browser's own sandbox")
BROWSER_IDLE_SECONDS = Setting(
    "FASTRPC_BROWSER_IDLE_SECONDS", "seconds", 120.0, "how long an idle browser is kept"
)
SEARCH_ENGINES = Setting(
    "FASTRPC_SEARCH_ENGINES", "names", (), "search engines, separated by commas; none: all"
)
SEARXNG_URL = Setting(
    "FASTRPC_SEARXNG_URL", "address", "", "an instance of SearXNG, one of the search engines"
)
SEARCH_USER_AGENT = Setting(
    "FASTRPC_SEARCH_USER_AGENT", "text", "", "the User-Agent for search engines; unset: fastrpc"
)
SEARCH_ADDRESS = Setting("FASTRPC_SEARCH_ADDRESS", "address", "", "replaces all search engines, for tests")


def has_full_descriptions() -> bool:
    """Whether tools have the descriptions for models: FASTRPC_DESCRIPTIONS is a setting of the server."""
    return os.environ.get("FASTRPC_DESCRIPTIONS", "").strip().lower() == "full"
