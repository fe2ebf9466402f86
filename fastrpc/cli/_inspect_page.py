"""The page of ``fastrpc inspect --html``: one file without scripts, images or external resources.

Every text of the server is escaped, and the page's Content-Security-Policy forbids to load or run anything.
It is light or dark as the reader's system is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from fastrpc.cli._catalogue import TITLES, arguments_of, capabilities_of, effect_of, parameters_of, title_of

Entry = dict[str, Any]

STYLE = """\
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --paper: #fbfcfd; --card: #fff;
  --line: #dfe4ea; --mark: #0b66c3; --code: #f1f4f7; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa5b4; --paper: #12161c;
  --card: #1a2029; --line: #2c3541; --mark: #6cb1ff; --code: #222a35; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.25rem 5rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 2rem; line-height: 1.2; }
h1 small { color: var(--soft); font-size: 1rem; font-weight: 400; }
h2 { margin: 2.75rem 0 .75rem; font-size: 1.2rem; }
h2 span, .soft { color: var(--soft); font-weight: 400; }
h3 { margin: 0; font: 600 1rem ui-monospace, monospace; }
nav { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: 1.25rem; }
nav a, .tag { border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .7rem; font-size: .85rem;
  color: var(--mark); text-decoration: none; background: var(--card); }
.tag { color: var(--soft); font: 400 .8rem system-ui, sans-serif; }
.tag.exec { color: #b3261e; border-color: currentColor; }
.tag.write { color: #9a6700; border-color: currentColor; }
@media (prefers-color-scheme: dark) { .tag.exec { color: #ff8a80; } .tag.write { color: #f2c14e; } }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.25rem; margin: 1.5rem 0 0; }
dt { color: var(--soft); } dd { margin: 0; }
article { margin: .75rem 0; padding: 1rem 1.15rem; border: 1px solid var(--line); border-radius: .6rem;
  background: var(--card); break-inside: avoid; }
p { margin: .4rem 0 0; white-space: pre-line; }
blockquote { margin: 1.5rem 0 0; padding: .25rem 0 .25rem 1rem; border-left: 3px solid var(--mark);
  white-space: pre-line; }
.wide { overflow-x: auto; }
table { width: 100%; margin-top: .75rem; border-collapse: collapse; font-size: .9rem; }
th { color: var(--soft); font-weight: 400; text-align: left; }
th, td { padding: .35rem .9rem .35rem 0; border-top: 1px solid var(--line); vertical-align: top; }
.name, .type { min-width: 10rem; overflow-wrap: break-word; } .need { min-width: 5rem; }
.text { width: 100%; }
code, pre { font-family: ui-monospace, monospace; font-size: .85rem; }
details { margin-top: .75rem; font-size: .9rem; }
summary { color: var(--soft); cursor: pointer; }
pre { margin: .5rem 0 0; padding: .75rem; overflow-x: auto; border-radius: .4rem; background: var(--code); }
@media (max-width: 40rem) { th { display: none; } th.name { display: block; padding: 0; border: 0; }
  tr { display: block; padding: .35rem 0;
  border-top: 1px solid var(--line); } td { display: inline-block; padding: 0 .9rem 0 0; border: 0; }
  td.name, td.type, td.need { min-width: 0; width: auto; } td.text { display: block; padding: 0; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
NAMES = {"tools": "name", "resources": "uri", "resourceTemplates": "uriTemplate", "prompts": "name"}


def page_of(report: dict[str, Any]) -> str:
    """Return a report of `fastrpc.cli.inspect` as a page."""
    title = escape(title_of(report))
    body = "\n".join([*_head(report), *_sections(report)])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _head(report: dict[str, Any]) -> Iterator[str]:
    server = report["serverInfo"]
    version = f" <small>{escape(str(server['version']))}</small>" if server.get("version") else ""
    yield f"<header><h1>{escape(title_of(report))}{version}</h1>"
    if server.get("description"):
        yield f"<p>{escape(str(server['description']))}</p>"
    links = [
        f'<a href="#{member}">{len(report[member])} {title if len(report[member]) > 1 else title[:-1]}</a>'
        for member, title in TITLES.items()
        if report[member]
    ]
    yield f"<nav>{''.join(links)}</nav></header>"
    if report["instructions"]:
        yield f"<blockquote>{escape(str(report['instructions']).strip())}</blockquote>"
    name, spoken = server.get("name"), report["protocolVersion"]
    others = [str(version) for version in report["supportedVersions"] if version != spoken]
    facts = {
        "Name": name if name != title_of(report) else None,
        "Website": server.get("websiteUrl"),
        "Protocol": spoken,
        "Also speaks": ", ".join(others),
        "Capabilities": ", ".join(capabilities_of(report)) or "none",
    }
    shown = "".join(f"<dt>{name}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items() if value)
    yield f"<dl>{shown}</dl>"


def _sections(report: dict[str, Any]) -> Iterator[str]:
    for member, title in TITLES.items():
        if report[member]:
            yield f'<section id="{member}"><h2>{title.capitalize()} <span>{len(report[member])}</span></h2>'
            for entry in report[member]:
                yield _article(member, entry)
            yield "</section>"


def _article(member: str, entry: Entry) -> str:
    parts = [f"<h3>{escape(str(entry.get(NAMES[member])))} {_tags(member, entry)}</h3>"]
    if entry.get("description"):
        parts.append(f"<p>{escape(str(entry['description']).strip())}</p>")
    if member == "tools":
        parts.append(_table("Parameter", parameters_of(entry.get("inputSchema"))))
        parts.append(_table("Returns", parameters_of(entry.get("outputSchema"))))
    elif member == "prompts":
        parts.append(_table("Argument", arguments_of(entry)))
    raw = escape(json.dumps(entry, ensure_ascii=False, indent=2))
    parts.append(f"<details><summary>As received</summary><pre>{raw}</pre></details>")
    return f"<article>{''.join(parts)}</article>"


def _tags(member: str, entry: Entry) -> str:
    """Return the tags of an entry: the effect, the type of content, the title."""
    effect = effect_of(entry) if member == "tools" else ""
    tags = [f'<span class="tag {effect}">{effect}</span>'] if effect else []
    name = entry.get("title") or (entry.get("name") if NAMES[member] != "name" else None)
    tags += [
        f'<span class="tag">{escape(str(text))}</span>'
        for text in (name, entry.get("mimeType"))
        if text and text != entry.get(NAMES[member])
    ]
    return " ".join(tags)


def _table(title: str, parameters: list[tuple[str, str, bool, str]]) -> str:
    if not parameters:
        return ""
    cells = [
        {
            "name": _code(name),
            "type": _code(kind),
            "need": "required" if required else "",
            "text": escape(text),
        }
        for name, kind, required, text in parameters
    ]
    has_text = any(row["text"] for row in cells)
    heads = {"name": title, "type": "Type", "need": "", "text": "Description" if has_text else ""}
    columns = [column for column in heads if column == "text" or any(row[column] for row in cells)]
    head = "".join(f'<th class="{column}">{heads[column]}</th>' for column in columns)
    rows = "".join(
        "<tr>" + "".join(f'<td class="{column}">{row[column]}</td>' for column in columns) + "</tr>"
        for row in cells
    )
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>" if text else ""
