"""Changes a file that a process watches, as an editor does: no one ever sees it empty or in part."""

from __future__ import annotations

from pathlib import Path


def rewrite(path: Path, text: str) -> None:
    """Put another file with this text in the place of a file."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)
