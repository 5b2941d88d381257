"""What is told of a job without the permission `view_job_payload`: one rule for every surface.

Hidden are arguments, results (also those of steps), tracebacks, and what is made of arguments or
written by the task itself: unique and limit keys, log lines, and the text of its progress. Of an
error its class is told, and its message as error groups have it: the first line without numbers,
ids, addresses and quoted text, for messages like to quote what a job was called with.

With the permission all is told that the REDACT hook lets pass. What may be asked for follows the
same line: see `jobqueue.filters.privacy`. A shell is not asked for a permission.
"""

from __future__ import annotations

import re

from jobqueue.engine.finding import Finding
from jobqueue.payload import normalized_message
from jobqueue.redaction import redact_text

READ_AHEAD = 500
"""Characters to read beyond those that are shown: the hook knows a secret if it sees it whole."""

_OPENED = re.compile(r"""(?:(?<![\w…])'(?!…')|["`“«]).*$""", re.DOTALL)


def shown_error(message: str, *, task: str, may_see_payload: bool, most: int | None = None) -> str:
    """Return what is told of an error's message, up to `most` characters.

    message: whole, or its beginning with `READ_AHEAD` characters more than are to be shown.
    """
    shown = redact_text(message, task=task, part="error")
    if not may_see_payload:
        # A quotation that was cut off before its end hides nothing by itself.
        shown = _OPENED.sub("…", normalized_message(shown))
    return shown[:most]


def shown_words(text: str, *, task: str, may_see_payload: bool) -> str | None:
    """Return what is told of a log line, or of the text of a job's progress; None: nothing."""
    return redact_text(text, task=task, part="log") if may_see_payload else None


def shown_sentence(finding: Finding, *, may_see_payload: bool) -> str:
    """Return what is told of something that is wrong."""
    if may_see_payload or finding.code != "schedule_failing":
        return finding.sentence
    # What its arguments have made fail may quote them.
    return f"Schedule {finding.subject!r} cannot tick."


def shown_key(key: str | None, *, may_see_payload: bool) -> str | None:
    """Return a unique key or the key of a limit, None for whoever may not see it."""
    return key if may_see_payload else None
