"""What is shown of arguments, results and recorded steps: redacted, bounded, never a crash.

A document is decoded only up to `MAX_READ_BYTES`, and shown up to `MAX_SHOWN`: a row with ten
megabytes costs a page no more than its size. What is not JSON is shown as text, and said to be so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, F, IntegerField, TextField, Value, When
from django.db.models.functions import Cast, Length
from django.utils.translation import gettext as _

from jobqueue.admin import marks
from jobqueue.redaction import redact, redact_text

MAX_READ_BYTES = 1024 * 1024
"""Characters of a document that are read and decoded: what is allowed by default at enqueue."""
MAX_SHOWN = 64 * 1024
"""Characters of a document that are shown."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A document as it is shown. note: what is not, or why; whole: nothing was cut or hidden."""

    text: str = ""
    note: str = ""
    value: Any = None
    whole: bool = False


def document_columns(name: str) -> dict[str, Any]:
    """Return annotations that read a document's size, and its text if it is not too large."""
    text = Cast(F(name), TextField())
    length = Length(text)
    few = When(**{f"{name}_size__lte": MAX_READ_BYTES}, then=text)
    return {
        f"{name}_size": Cast(length, IntegerField()),
        f"{name}_text": Case(few, default=Value(None), output_field=TextField()),
    }


def shown_document(text: str | None, length: int | None, *, task: str, part: str) -> Shown:
    """Return what may be shown of a document's text, which is None if it was too large to read."""
    if length is None:
        return Shown(note=_("Nothing."))
    if text is None:
        return Shown(note=_("Too large to show: %(size)s.") % {"size": marks.size(length)})
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        shown = redact_text(text, task=task, part=part)
        return Shown(_cut(shown), _("This is not JSON: jobs cannot read it, either."))
    redacted = redact(value, task=task, part=part)
    pretty = _pretty(redacted)
    note = ""
    if len(pretty) > MAX_SHOWN:
        sizes = {"shown": marks.size(MAX_SHOWN), "size": marks.size(length)}
        note = _("The first %(shown)s of %(size)s.") % sizes
    return Shown(_cut(pretty), note, redacted, whole=redacted == value and not note)


def _pretty(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except (ValueError, RecursionError, TypeError):
        return str(value)


def _cut(text: str) -> str:
    return marks.visible(text[:MAX_SHOWN])
