"""The backend that Django calls: messages in, jobs out."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import options_for
from jobqueue.email.messages import as_document
from jobqueue.email.tasks import send_message
from jobqueue.exceptions import InvalidArgument, PayloadTooLarge, UnsupportedType

logger = logging.getLogger("jobqueue")


class EmailBackend(BaseEmailBackend):
    """Makes a job of each message.

    task_backend: the TASKS alias whose database and workers have the jobs.
    fail_silently: log a message that cannot be a job, and leave it out. A database error surfaces
    in any case: the caller's transaction would be broken without a word.
    """

    def __init__(
        self,
        fail_silently: bool = False,
        *,
        alias: str | None = None,
        task_backend: str = DEFAULT_TASK_BACKEND_ALIAS,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(alias=alias, **kwargs)
        self.fail_silently = fail_silently
        self._task_backend = task_backend
        if username is not None or password is not None:
            raise InvalidArgument(
                "A message that is sent by a job cannot bring credentials: they would be stored "
                "with its arguments. Give them to the backend that the option EMAIL_BACKEND names."
            )

    def send_messages(self, email_messages: Sequence[EmailMessage] | None) -> int:
        """Enqueue the messages that have recipients, all or none; return how many they are.

        Raise InvalidArgument or UnsupportedType for what cannot travel, PayloadTooLarge.
        """
        documents = []
        for message in email_messages or ():
            if message.recipients():
                try:
                    documents.append(self._checked(message))
                except (InvalidArgument, UnsupportedType, PayloadTooLarge):
                    if not self.fail_silently:
                        raise
                    logger.exception("A message cannot be sent by a job, and is left out")
        self._enqueue(documents)
        return len(documents)

    def _enqueue(self, documents: list[dict[str, Any]]) -> None:
        if documents:
            alias = self._task_backend
            task = send_message.using(backend=alias, queue_name=options_for(alias).email_queue)
            task.enqueue_many([task.bind(document) for document in documents])

    def _checked(self, message: EmailMessage) -> dict[str, Any]:
        """Return what travels of a message; raise PayloadTooLarge before any statement."""
        document = as_document(message)
        limit = options_for(self._task_backend).max_arguments_bytes
        size = len(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))
        if size > limit:
            raise PayloadTooLarge(
                f"The message {str(message.subject)!r:.100} takes {size:,} bytes as a job, with "
                f"{len(message.attachments)} attachment(s); the limit MAX_ARGUMENTS_BYTES is "
                f"{limit:,}. Mail a link instead of the file, raise the limit, or send this "
                "message through a backend that sends at once."
            )
        return document
