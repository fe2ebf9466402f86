"""Installs the fastrpc that a figure of record is of, so that it can be measured on this machine too.

Machines of one kind differ: the same commit has had 1.47 times the calls of the C reference on one and 1.2 on
the next. What a recorded figure would be here, only the recorded commit can tell. Its sources are taken from
the repository's history and installed as a wheel in an environment of their own,
`benchmarks/.cache/recorded/COMMIT`. Takes about a minute the first time, nothing when it is there.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile

from build import CACHE, CannotBuild
from merging import first_rows

BUILD_LIMIT_SECONDS = 600


def commits_in(path: str) -> dict[str, str]:
    """The commit that each row of a file of record was measured on. Runs of changed files are left out,
    unless one of the same commit without any has been recorded too: the record was what had changed then."""
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    runs = [{**record, "rows": first_rows(record)}, *record.get("later", ())]
    clean = {run["commit"] for run in runs if not run["changed_files"]}
    return {row: run["commit"] for run in runs if run["commit"] in clean for row in run["rows"]}


def python_with(commit: str, repository: str) -> str:
    """Return the Python that has fastrpc of this commit installed. Raises CannotBuild."""
    folder = os.path.join(CACHE, "recorded", commit)
    python = os.path.join(folder, "bin", "python")
    done = os.path.join(folder, ".installed")
    if os.path.exists(done):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    sources = os.path.join(folder, "sources")
    archive = output_of("git", "-C", repository, "archive", commit)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(sources, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    output_of(sys.executable, "-m", "venv", folder)
    output_of(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{sources}[http]")
    shutil.rmtree(sources)
    with open(done, "w", encoding="utf-8"):
        return python


def output_of(*command: str) -> bytes:
    """What a command prints. Raises CannotBuild when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=BUILD_LIMIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        said = (done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        raise CannotBuild(f"{' '.join(command[:4])} said: {said}")
    return done.stdout
