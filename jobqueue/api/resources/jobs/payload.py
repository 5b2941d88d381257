"""Arguments as they are answered: redacted, and null where the row has none that can be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobqueue.api.values import shown
from jobqueue.redaction import redact


def is_call(document: Any) -> bool:
    """Return whether a document says what a task is called with."""
    return (
        isinstance(document, Mapping)
        and isinstance(document.get("args"), list)
        and isinstance(document.get("kwargs"), Mapping)
    )


def arguments_of(document: Any, task: str) -> dict[str, Any] | None:
    """Return what may be shown of the arguments in `document`."""
    if not is_call(document):
        return None
    found = redact(document, task=task, part="arguments")
    if is_call(found):
        return {"args": shown(found["args"]), "kwargs": shown(found["kwargs"])}
    # The hook has put something else in their place, such as a word that says so.
    return {"args": [shown(found)], "kwargs": {}}
