"""Reads the SQL files: ``sql/<vendor>/<verb>_<noun>.sql``, one statement each.

Comments (the file's header: purpose, caller, index) are stripped once, so that they do not
travel with every statement. ``{name}`` marks in a file are replaced by fixed fragments of ours,
never by values: those are parameters.
"""

import re
from functools import cache
from importlib import resources

_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)


@cache
def statement(vendor: str, name: str, **fragments: str) -> str:
    """Return the text of one statement with its fragments filled in."""
    path = resources.files("jobqueue.storage") / "sql" / vendor / f"{name}.sql"
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    for mark, fragment in fragments.items():
        text = text.replace("{" + mark + "}", fragment)
    return "\n".join(line for line in text.splitlines() if line.strip())
