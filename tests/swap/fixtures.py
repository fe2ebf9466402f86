"""Makes the folder that servers work in: a note, tables, a database, a repository, documents of small size.

It is the same each time: what a server says of it must be equal in two runs. Takes about 50 ms, most of it
git.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sqlite3
import subprocess
from typing import Any

FILES = {
    "note.txt": "A note.\nIt has two lines.\n",
    "page.md": "---\ntitle: Page\ntags: [a, b]\n---\n\n# Page\n\nSome *text* with a [link](note.txt).\n",
    "page.html": "<html><head><title>Page</title></head><body><h1>Page</h1><p>Some text.</p></body></html>\n",
    "table.csv": "name,number\none,1\ntwo,2\nthree,3\n",
    "module.py": 'def double(number: int) -> int:\n    """Twice a number."""\n    return 2 * number\n',
    "kubeconfig.yaml": """apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: local, context: {cluster: local, user: nobody}}]
current-context: local
users: [{name: nobody, user: {token: none}}]
""",
    "hooks_mcp.yaml": """server_name: Hooks
actions:
- name: say
  description: Says a word
  command: echo $WORD
  parameters: [{name: WORD, type: insecure_string, description: The word}]
- {name: fails, description: Fails, command: "false"}
prompts:
- name: review
  description: Reviews
  prompt: Review $of.
  arguments: [{name: of, description: What, required: true}]
""",
}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
"""A picture of one pixel."""
OPENAPI: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1.0"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {
        "/items": {
            "get": {
                "operationId": "list_items",
                "summary": "All items",
                "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "default": 10}}
                ],
                "responses": {"200": {"description": "The items"}},
            }
        },
        "/items/{id}": {
            "get": {
                "operationId": "get_item",
                "summary": "One item",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "The item"}},
            }
        },
    },
}
MOMENT = "2026-01-02T03:04:05+00:00"
GIT = {
    "GIT_AUTHOR_DATE": MOMENT,
    "GIT_COMMITTER_DATE": MOMENT,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def make_folder(folder: str) -> None:
    """Make it anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("home", "empty", "files", "repository"):
        os.makedirs(os.path.join(folder, name))
    for name, text in FILES.items():
        write(os.path.join(folder, "files", name), text)
    write(os.path.join(folder, "files", "openapi.json"), json.dumps(OPENAPI))
    below_v1 = {**OPENAPI, "paths": {f"/v1{path}": item for path, item in OPENAPI["paths"].items()}}
    write(os.path.join(folder, "files", "openapi_v1.json"), json.dumps(below_v1))
    with open(os.path.join(folder, "files", "dot.png"), "wb") as file:
        file.write(base64.b64decode(DOT))
    database = sqlite3.connect(os.path.join(folder, "files", "shop.sqlite"))
    database.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL)")
    database.executemany("INSERT INTO items (name, price) VALUES (?, ?)", [("pen", 1.5), ("book", 12.0)])
    database.commit()
    database.close()
    repository = os.path.join(folder, "repository")
    write(os.path.join(repository, "note.txt"), FILES["note.txt"])
    env = {**os.environ, **GIT, "HOME": os.path.join(folder, "home")}
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "First"]):
        subprocess.run(["git", *words], cwd=repository, env=env, check=True, timeout=30)


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
