"""Sending a message that a job carries, through the real backend."""

from __future__ import annotations

import re
from email.utils import parseaddr
from typing import Any

from django.core import mail
from django.utils.encoding import punycode
from django.utils.module_loading import import_string

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS
from jobqueue.conf import Options, jobqueue_aliases, options_for
from jobqueue.email.messages import as_message
from jobqueue.engine.mail_settings import mailers, why_unusable
from jobqueue.exceptions import InvalidOptions, MailNotSent
from jobqueue.tasks import task

SEND_SECONDS = 300.0
"""How long one attempt may take: connecting, and handing over a message of some megabytes."""
_DOMAIN = re.compile(r"[A-Za-z0-9.-]+")


def _alias() -> str:
    """Return a TASKS alias of ours to define the task by; each job names its own."""
    ours = jobqueue_aliases()
    return DEFAULT_TASK_BACKEND_ALIAS if DEFAULT_TASK_BACKEND_ALIAS in ours else ours[0]


@task(
    atomic=False,
    takes_context=True,
    timeout=SEND_SECONDS,
    backend=_alias(),
    queue_name=options_for(_alias()).email_queue,
)
def send_message(context: Any, document: dict[str, Any]) -> dict[str, Any]:
    """Send one message; its Message-ID is the same in every attempt."""
    message = as_message(document)
    message_id = _name(message, context.idempotency_key)
    sent = real_backend(options_for(context.backend)).send_messages([message])
    if sent == 0:
        raise MailNotSent("The email backend says that it has sent nothing, and not why.")
    return {"message_id": message_id, "recipients": len(message.recipients())}


def real_backend(options: Options) -> Any:
    """Return a connection of the backend that sends; raise InvalidOptions if there is none."""
    name = options.email_backend
    if (why := why_unusable(name)) is not None:
        raise InvalidOptions(f"The option EMAIL_BACKEND is {name!r}, and {why}.")
    if mailers() is not None:
        return mail.mailers[name]
    backend = import_string(name)
    # Django 6.1's own warn if they are made without being told that there is no alias.
    return backend(alias=None) if name.startswith("django.") else backend()


def _name(message: Any, key: str) -> str:
    """Give the message its Message-ID, unless the caller has; return it."""
    for header, value in message.extra_headers.items():
        if header.lower() == "message-id":
            return str(value)
    message_id = f"<{key}@{_domain(message.from_email)}>"
    message.extra_headers["Message-ID"] = message_id
    return message_id


def _domain(address: str) -> str:
    """Return the domain of the sender: the host's own name would differ from worker to worker."""
    _, _, domain = parseaddr(address)[1].partition("@")
    try:
        domain = punycode(domain)
    except UnicodeError:
        return "localhost"
    return domain if _DOMAIN.fullmatch(domain) else "localhost"
