"""Skills as resources: folders with a ``SKILL.md`` (`SkillProvider`), and folders of these.

A skill has the resources ``skill://name/SKILL.md`` and ``skill://name/_manifest``, a list of its files with
their sizes and hashes; the other files are read by a template, or are listed, too. Files are read when they
are asked for; nothing outside of the folder is.
"""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

from fastrpc import diagnostics
from fastrpc.compat.components.objects import Resource, ResourceTemplate
from fastrpc.compat.providers.base import AggregateProvider, Provider
from fastrpc.json_encoding import to_json
from fastrpc.regular_files import LARGEST, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    SupportingFiles = Literal["template", "resources"]

MAIN_FILE = "SKILL.md"
MANIFEST = "_manifest"
LONGEST_DESCRIPTION = 200


class SkillInfo:
    """A skill: its `name`, `description`, `path`, `main_file`, and the `frontmatter` of that."""

    def __init__(self, path: Path, main_file: str) -> None:
        text = read_regular(str(_within(path, main_file)), LARGEST).decode("utf-8", "replace")
        self.frontmatter, body = parse_frontmatter(text)
        self.name = path.name
        self.path = path
        self.main_file = main_file
        given = self.frontmatter.get("description")
        self.description = given if isinstance(given, str) and given else _first_line(body)
        self.description = self.description or f"Skill: {self.name}"

    @property
    def uri_prefix(self) -> str:
        """What the URIs of its files begin with."""
        return f"skill://{self.name}/"

    @property
    def files(self) -> list[dict[str, Any]]:
        """Its files, each with ``path``, ``size`` and ``hash``."""
        found = []
        for path in sorted(self.path.rglob("*")):
            if path.is_file() and path.resolve().is_relative_to(self.path):
                data = path.read_bytes()
                shown = path.relative_to(self.path).as_posix()
                found.append({"path": shown, "size": len(data), "hash": f"sha256:{sha256(data).hexdigest()}"})
        return found

    def content(self, relative: str) -> str | bytes:
        """Return a file's content, a text if its type is one. Raises ValueError and OSError."""
        data = read_regular(str(_within(self.path, relative)), LARGEST)
        return data.decode("utf-8") if (type_of(relative) or "").startswith("text/") else data

    def manifest(self) -> str:
        """Return the list of files, as JSON."""
        return to_json({"skill": self.name, "files": self.files}).decode()


def type_of(path: str) -> str | None:
    """Return the MIME type of a file, by its name."""
    return "text/markdown" if path.lower().endswith(".md") else guess_type(path)[0]


def _within(folder: Path, relative: str) -> Path:
    """Return the path of a file in a folder. Raises ValueError for one outside of it."""
    path = Path(os.path.join(folder, relative)).resolve() if "\0" not in relative else folder
    if path == folder or not path.is_relative_to(folder):
        raise ValueError(f"{relative[:80]!r} is no file of the skill")
    return path


def _first_line(body: str) -> str:
    for line in body.splitlines():
        if line.strip():
            return line.strip().lstrip("#").strip()[:LONGEST_DESCRIPTION]
    return ""


def parse_frontmatter(text: str) -> tuple[dict[str, Any], str]:
    """Return the members before a Markdown text, between two lines of dashes, and the text.

    They are read as YAML where PyYAML is installed, all scalars as texts; else as ``name: value`` lines.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    if not lines[0].startswith("---"):
        return {}, text
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
    if end is None:
        return {}, text
    head, body = "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])
    try:
        yaml: Any = __import__("yaml")
        parsed = yaml.load(head, Loader=yaml.BaseLoader)
        return (parsed if isinstance(parsed, dict) else {}), body
    except Exception:  # no PyYAML, or no YAML
        pairs = (line.partition(":") for line in head.splitlines())
        return {name.strip(): value.strip().strip("\"'") for name, mark, value in pairs if mark}, body


class _SkillResource(Resource):
    """A file of a skill, or its manifest."""

    skill: SkillInfo
    file: str

    async def read(self) -> str | bytes:
        def content() -> str | bytes:
            return self.skill.manifest() if self.file == MANIFEST else self.skill.content(self.file)

        return await asyncio.get_running_loop().run_in_executor(None, content)


class _SkillTemplate(ResourceTemplate):
    """The other files of a skill."""

    skill: SkillInfo

    async def read(self, arguments: dict[str, Any]) -> str | bytes:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self.skill.content, arguments.get("path", ""))


class SkillProvider(Provider):
    """One skill, in the folder `skill_path`. `supporting_files`: ``template``, or ``resources`` if they are
    listed. Raises FileNotFoundError for a folder without the main file."""

    def __init__(
        self,
        skill_path: str | Path,
        main_file_name: str = MAIN_FILE,
        supporting_files: SupportingFiles = "template",
    ) -> None:
        super().__init__()
        path = Path(skill_path).resolve()
        if not (path / main_file_name).exists():
            raise FileNotFoundError(f"{path}: there is no {main_file_name}")
        self._supporting_files = supporting_files
        self.skill_info = SkillInfo(path, main_file_name)

    def _resource(self, file: str) -> _SkillResource:
        skill = self.skill_info
        if file == skill.main_file:
            description, mime_type = skill.description, "text/markdown"
        elif file == MANIFEST:
            description, mime_type = f"File listing for {skill.name}", "application/json"
        else:
            description = f"File from {skill.name} skill"
            mime_type = type_of(file) or "application/octet-stream"
        shown = {"name": skill.name}
        if file in (skill.main_file, MANIFEST):
            shown["is_manifest"] = file == MANIFEST  # type: ignore[assignment]
        return _SkillResource(
            uri=skill.uri_prefix + file,
            name=f"{skill.name}/{file}",
            description=description,
            mime_type=mime_type,
            meta={"fastmcp": {"skill": shown}},
            skill=skill,
            file=file,
        )

    async def _list_resources(self) -> Sequence[Resource]:
        main = self.skill_info.main_file
        found = [self._resource(main), self._resource(MANIFEST)]
        if self._supporting_files == "resources":
            found += [self._resource(file["path"]) for file in self.skill_info.files if file["path"] != main]
        return found

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        if self._supporting_files != "template":
            return []
        skill = self.skill_info
        return [
            _SkillTemplate(
                uri_template=skill.uri_prefix + "{path*}",
                name=f"{skill.name}_files",
                description=f"Access files within {skill.name}",
                mime_type="application/octet-stream",
                skill=skill,
            )
        ]

    def __repr__(self) -> str:
        return f"SkillProvider({str(self.skill_info.path)!r})"


class SkillsDirectoryProvider(AggregateProvider):
    """The skills in the folders of `roots`; of several of one name the first. With ``reload=True`` they are
    looked for anew at each request."""

    def __init__(
        self,
        roots: str | Path | Sequence[str | Path],
        reload: bool = False,
        main_file_name: str = MAIN_FILE,
        supporting_files: SupportingFiles = "template",
    ) -> None:
        super().__init__()
        several = [roots] if isinstance(roots, (str, Path)) else roots
        self._roots = [Path(root).resolve() for root in several]
        self._reload = reload
        self._main_file_name = main_file_name
        self._supporting_files = supporting_files
        self._discover()

    def _discover(self) -> None:
        found: dict[str, Provider] = {}
        for folder in self._folders():
            if folder.name not in found and (folder / self._main_file_name).exists():
                try:
                    found[folder.name] = SkillProvider(folder, self._main_file_name, self._supporting_files)
                except (OSError, ValueError) as error:
                    diagnostics.write("warning", f"skills: {folder}: {error!r:.200}")
        self.providers[:] = found.values()

    def _folders(self) -> Iterator[Path]:
        for root in self._roots:
            if root.is_dir():
                yield from (path.resolve() for path in root.iterdir() if path.is_dir())

    async def _every(self, method: str, *given: Any) -> list[Any]:
        if self._reload:
            self._discover()
        return await super()._every(method, *given)


class _VendorProvider(SkillsDirectoryProvider):
    """The skills of an agent's own folders, below the home folder or at absolute paths."""

    PLACES: tuple[str, ...] = ()

    def __init__(self, reload: bool = False, supporting_files: SupportingFiles = "template") -> None:
        super().__init__([Path.home() / place for place in self.PLACES], reload, MAIN_FILE, supporting_files)


class ClaudeSkillsProvider(_VendorProvider):
    """The skills of Claude Code."""

    PLACES = (".claude/skills",)


class CodexSkillsProvider(_VendorProvider):
    """The skills of Codex: the system's and the user's."""

    PLACES = ("/etc/codex/skills", ".codex/skills")


class CopilotSkillsProvider(_VendorProvider):
    """The skills of GitHub Copilot."""

    PLACES = (".copilot/skills",)


class CursorSkillsProvider(_VendorProvider):
    """The skills of Cursor."""

    PLACES = (".cursor/skills",)


class GeminiSkillsProvider(_VendorProvider):
    """The skills of Gemini CLI."""

    PLACES = (".gemini/skills",)


class GooseSkillsProvider(_VendorProvider):
    """The skills of Goose."""

    PLACES = (".config/agents/skills",)


class OpenCodeSkillsProvider(_VendorProvider):
    """The skills of OpenCode."""

    PLACES = (".config/opencode/skills",)


class VSCodeSkillsProvider(_VendorProvider):
    """The skills of Visual Studio Code."""

    PLACES = (".copilot/skills",)
