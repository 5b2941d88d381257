"""Checks of how mail is sent, where the project's email backend makes jobs of its messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error

from jobqueue.conf import Options
from jobqueue.engine.mail_settings import mail_aliases, why_unusable


def check_mail(alias: str, backend: Any, options: Options) -> Iterator[CheckMessage]:
    """Yield what would keep the workers of a TASKS alias from sending mail."""
    if alias not in mail_aliases():
        return
    why = why_unusable(options.email_backend)
    if why is not None:
        yield Error(
            f"TASKS[{alias!r}]: OPTIONS: EMAIL_BACKEND is {options.email_backend!r}, and {why}.",
            hint="Name what sends: the path of an email backend, or an alias in MAILERS.",
            id="jobqueue.E013",
        )
    if backend.queues and options.email_queue not in backend.queues:
        yield Error(
            f"TASKS[{alias!r}]: OPTIONS: EMAIL_QUEUE is {options.email_queue!r}, which is not "
            "among QUEUES.",
            hint=f"Use one of {', '.join(sorted(map(str, backend.queues)))}, or add it there.",
            id="jobqueue.E013",
        )
