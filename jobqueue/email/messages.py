"""Django's email messages as JSON documents, and back.

A worker rebuilds the message and lets Django make its MIME form there: what a provider's backend
reads from the message (its tags, a template) is still there then.
"""

from __future__ import annotations

import email
import email.policy
from base64 import b64decode, b64encode
from email.message import Message
from email.mime.base import MIMEBase
from typing import Any

import django
from django.core.mail import EmailAttachment, EmailMessage, EmailMultiAlternatives
from django.utils.encoding import force_str

from jobqueue.exceptions import UnsupportedType
from jobqueue.payload import round_trip

ADDRESSES = ("to", "cc", "bcc", "reply_to")
TEXTS = ("subject", "body", "from_email")
MADE_ANEW = {*ADDRESSES, *TEXTS, "attachments", "alternatives", "extra_headers", "connection"}
MAX_EXTRA_BYTES = 64 * 1024 * 1024
"""Only a bound: the arguments' own limit is far below."""


def as_document(message: EmailMessage) -> dict[str, Any]:
    """Return what a message says, as JSON holds it.

    Raise UnsupportedType or InvalidArgument for what it cannot hold.
    """
    _refuse_own_mime(message)
    document: dict[str, Any] = {name: force_str(getattr(message, name)) for name in TEXTS}
    document |= {name: [force_str(each) for each in getattr(message, name)] for name in ADDRESSES}
    document["headers"] = {
        force_str(name): force_str(value) for name, value in message.extra_headers.items()
    }
    document["content_subtype"] = message.content_subtype
    document["encoding"] = None if message.encoding is None else force_str(message.encoding)
    document["attachments"] = [_attachment(each) for each in message.attachments]
    document["alternatives"] = [
        {"content": _content(content), "mimetype": mimetype}
        for content, mimetype in getattr(message, "alternatives", None) or ()
    ]
    document["extra"] = _extra(message)
    return document


def as_message(document: dict[str, Any]) -> EmailMessage:
    """Return the message of a document."""
    message = EmailMultiAlternatives(
        **{name: document[name] for name in (*TEXTS, *ADDRESSES)}, headers=document["headers"]
    )
    message.content_subtype = document["content_subtype"]
    message.encoding = document["encoding"]
    for name, value in document["extra"].items():
        setattr(message, name, value)
    message.attachments = [_rebuilt(each) for each in document["attachments"]]
    for each in document["alternatives"]:
        message.attach_alternative(_content_of(each["content"]), each["mimetype"])
    return message


def _refuse_own_mime(message: EmailMessage) -> None:
    if type(message).message is not EmailMessage.message:
        name = f"{type(message).__module__}.{type(message).__qualname__}"
        raise UnsupportedType(
            f"{name} makes its MIME form itself, which a job cannot carry. Send it through a "
            "backend that sends at once, or enqueue a task of yours that makes and sends it."
        )


def _extra(message: EmailMessage) -> dict[str, Any]:
    """Return what else was set on a message, by its own public names."""
    found = {
        name: value
        for name, value in vars(message).items()
        if name not in MADE_ANEW and not name.startswith("_") and name not in _COVERED
    }
    for name, value in found.items():
        try:
            found[name] = round_trip(value, MAX_EXTRA_BYTES)
        except TypeError as error:
            raise UnsupportedType(f"message.{name} cannot travel in a job: {error}") from error
    return found


_COVERED = {"content_subtype", "encoding"}


# --- attachments ----------------------------------------


def _attachment(attachment: Any) -> dict[str, Any]:
    if isinstance(attachment, Message):  # a part that the caller made; MIMEBase is one
        return {"part": b64encode(attachment.as_bytes()).decode()}
    filename, content, mimetype = attachment
    return {
        "filename": None if filename is None else force_str(filename),
        "content": _content(content),
        "mimetype": mimetype,
    }


def _content(content: Any) -> Any:
    """Return text as it is, bytes and messages as base64."""
    if isinstance(content, EmailMessage):
        content = content.message()
    if isinstance(content, Message):
        content = content.as_bytes()
    if isinstance(content, bytes | bytearray | memoryview):
        return {"base64": b64encode(content).decode()}
    return force_str(content)


def _content_of(content: Any) -> str | bytes:
    return b64decode(content["base64"]) if isinstance(content, dict) else str(content)


def _rebuilt(document: dict[str, Any]) -> Any:
    if "part" in document:
        return _part(b64decode(document["part"]))
    return EmailAttachment(
        document["filename"], _content_of(document["content"]), document["mimetype"]
    )


def _part(raw: bytes) -> Any:
    """Return a MIME part in the form that this Django attaches."""
    if django.VERSION >= (6, 0):
        return email.message_from_bytes(raw, policy=email.policy.default)
    parsed = email.message_from_bytes(raw)
    part = MIMEBase(parsed.get_content_maintype(), parsed.get_content_subtype())
    for name in list(part):
        del part[name]
    for name, value in parsed.items():
        part[name] = value
    part.set_payload(parsed.get_payload())
    return part
