"""The settings of the knowledge toolset, and the options of `fastrpc serve` that set them."""

from __future__ import annotations

from fastrpc.settings import Setting

DATABASE = Setting(
    "FASTRPC_KNOWLEDGE_DATABASE",
    "secret",
    "",
    "where memory is kept: sqlite:///PATH or postgresql://…; unset: knowledge.sqlite3 in the state folder",
)
"""Masked as a secret, since a URL may hold a password."""
SCHEME = Setting("FASTRPC_KNOWLEDGE_SCHEME", "text", "knowledge", "the scheme of the URIs of resources")
LANGUAGE = Setting(
    "FASTRPC_KNOWLEDGE_LANGUAGE", "text", "en", "the language of prompts: en, ar, or another's name"
)
AGENTS = Setting(
    "FASTRPC_KNOWLEDGE_AGENTS", "folder", "", "a folder for each agent, with SOUL.md and a config"
)
NAMES = Setting(
    "FASTRPC_KNOWLEDGE_NAMES",
    "text",
    "dotted",
    "the names of tools: dotted, or underscore for clients that take no dots",
)

DOCUMENTS = Setting(
    "FASTRPC_KNOWLEDGE_DOCUMENTS", "folders", (), "the folders of which document.add may read files by path"
)
DOCUMENTS_CALLERS = Setting(
    "FASTRPC_KNOWLEDGE_DOCUMENTS_CALLERS",
    "patterns",
    "",
    "globs of the classes of callers that may name such files over HTTP; unset: none",
)

EXECUTE_CODE = Setting(
    "FASTRPC_KNOWLEDGE_EXECUTE_CODE", "permission", False, "steps of workflows may run their own Python code"
)
MODEL_URL = Setting(
    "FASTRPC_KNOWLEDGE_MODEL_URL",
    "address",
    "",
    "the model of workflows whose client has none: an endpoint such as https://host/v1 (chat completions)",
)
MODEL = Setting("FASTRPC_KNOWLEDGE_MODEL", "text", "", "the name of that model")
MODEL_KEY = Setting("FASTRPC_KNOWLEDGE_MODEL_KEY", "secret", "", "the key for that endpoint")
EMBEDDINGS = Setting(
    "FASTRPC_KNOWLEDGE_EMBEDDINGS",
    "address",
    "",
    "the model for search by meaning: an endpoint such as https://host/v1 (OpenAI's embeddings)",
)
EMBEDDINGS_MODEL = Setting("FASTRPC_KNOWLEDGE_EMBEDDINGS_MODEL", "text", "", "the name of that model")
EMBEDDINGS_KEY = Setting("FASTRPC_KNOWLEDGE_EMBEDDINGS_KEY", "secret", "", "the key for that endpoint")
EMBEDDINGS_FOLDER = Setting(
    "FASTRPC_KNOWLEDGE_EMBEDDINGS_FOLDER",
    "folder",
    "",
    "instead of an endpoint: a folder with model.onnx and tokenizer.json, whose model this process runs",
)
ENTITIES = Setting(
    "FASTRPC_KNOWLEDGE_ENTITIES",
    "address",
    "",
    "the model that finds what entries name: an endpoint such as https://host/v1 (chat completions)",
)
ENTITIES_MODEL = Setting("FASTRPC_KNOWLEDGE_ENTITIES_MODEL", "text", "", "the name of that model")
ENTITIES_KEY = Setting("FASTRPC_KNOWLEDGE_ENTITIES_KEY", "secret", "", "the key for that endpoint")
WEBHOOK = Setting("FASTRPC_KNOWLEDGE_WEBHOOK", "address", "", "where workflows send messages to, as POST")
WEBHOOK_SECRET = Setting(
    "FASTRPC_KNOWLEDGE_WEBHOOK_SECRET", "secret", "", "what messages to the webhook are signed with"
)

MODEL_OPTIONS = {
    "--embeddings": EMBEDDINGS,
    "--embeddings-model": EMBEDDINGS_MODEL,
    "--embeddings-folder": EMBEDDINGS_FOLDER,
    "--entities": ENTITIES,
    "--entities-model": ENTITIES_MODEL,
}
"""The options that name the models, also for commands."""
OPTIONS = {
    "--database": DATABASE,
    "--scheme": SCHEME,
    "--language": LANGUAGE,
    "--agents": AGENTS,
    "--names": NAMES,
    "--documents": DOCUMENTS,
    "--documents-callers": DOCUMENTS_CALLERS,
    "--execute-code": EXECUTE_CODE,
    "--model-url": MODEL_URL,
    "--model": MODEL,
    "--workflow-webhook": WEBHOOK,
    **MODEL_OPTIONS,
}
"""The options of `fastrpc serve` for this toolset, besides its own options."""


def embeds() -> bool:
    """Whether the settings name a model for search by meaning."""
    return bool(EMBEDDINGS.read() or EMBEDDINGS_FOLDER.read())
