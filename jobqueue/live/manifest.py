"""Which files the built page consists of: what Vite's manifest says. Pure but for reading it.

The page is built into ``jobqueue/static/jobqueue/live/`` of this package, with a ``manifest.json``
beside it, and is in the wheel. Files have a hash of their content in their names, so whatever may
be cached may be cached for ever. A checkout has none until ``make page``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "static" / "jobqueue" / "live"
STATIC = "jobqueue/live"
"""The same folder, as ``static()`` knows it."""
BUILD = "make page"
"""The command that builds it."""


class NotBuilt(Exception):
    """There is no page; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Assets:
    """Names of static files: the script that begins, its parts to load at once, styles."""

    script: str
    preloads: tuple[str, ...]
    styles: tuple[str, ...]


_read: dict[Path, tuple[int, Assets]] = {}


def assets(folder: Path = FOLDER) -> Assets:
    """Return the files of the page; read anew after it was built anew. Raise NotBuilt."""
    path = folder / "manifest.json"
    try:
        modified = path.stat().st_mtime_ns
    except OSError:
        raise NotBuilt(f"The page has not been built: run `{BUILD}`.") from None
    known = _read.get(path)
    if known is None or known[0] != modified:
        known = _read[path] = modified, _assets(path)
    return known[1]


def _assets(path: Path) -> Assets:
    try:
        chunks = json.loads(path.read_text(encoding="utf-8"))
        entry = next(chunk for chunk in chunks.values() if chunk.get("isEntry"))
        parts = _parts(chunks, entry)
        styles = [style for part in (entry, *parts) for style in part.get("css", ())]
        return Assets(
            script=_static(entry["file"]),
            preloads=tuple(_static(part["file"]) for part in parts),
            styles=tuple(dict.fromkeys(_static(style) for style in styles)),
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError, StopIteration):
        raise NotBuilt(f"The page's manifest cannot be read: run `{BUILD}` again.") from None


def _parts(chunks: dict[str, Any], entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the entry imports, and what that imports, each once."""
    found: dict[str, dict[str, Any]] = {}
    todo = list(entry.get("imports", ()))
    while todo:
        name = todo.pop(0)
        if name not in found and chunks[name] is not entry:
            found[name] = chunks[name]
            todo += chunks[name].get("imports", ())
    return list(found.values())


def _static(name: str) -> str:
    return f"{STATIC}/{name}"
