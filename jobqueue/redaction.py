"""What is hidden of arguments, results and errors, on every surface, before it is shown or sent.

    JOBQUEUE = {"REDACT": "shop.privacy.redact"}

    def redact(value, *, task, part):
        if task == "shop.tasks.charge_card":
            return "hidden"
        return hide_secrets(value, task=task, part=part)

The hook is called with what is about to be shown: ``{"args": [...], "kwargs": {...}}`` for the part
"arguments", a value for "result" and "step", text for "error" (messages and tracebacks) and "log".
It returns what may be shown. The default, `hide_secrets`, hides what bears a usual name of secrets
(password, token, api_key, …; by their parameter also arguments given by position), and passwords in
URLs and texts.

If the hook fails, nothing is shown: `FAILED` stands in its place. What is stored is not changed:
jobs need their arguments. Whoever may read the database, or runs the job, sees everything.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from jobqueue.conf import MAX_PAYLOAD_DEPTH
from jobqueue.engine.arguments import parameters_of
from jobqueue.engine.registry import registry
from jobqueue.events import emit
from jobqueue.exceptions import TaskNotRegistered

Redact = Callable[..., Any]

HIDDEN = "[hidden]"
FAILED = "[not shown: the REDACT hook failed]"
PARTS = frozenset({"arguments", "result", "step", "error", "log"})

_SECRET_WORDS = (
    "password", "passwd", "passphrase", "secret", "token", "apikey", "authorization", "credential",
    "privatekey", "accesskey", "cookie", "sessionid", "sessionkey", "signature", "csrf",
    "cardnumber", "iban",
)  # fmt: skip
_SECRET_NAMES = frozenset({"pass", "pwd", "auth", "pin", "otp", "cvv", "cvc", "ssn"})
_NO_LETTER = re.compile(r"[^a-z0-9]")
_URL_PASSWORD = re.compile(r"(\w://[^\s/:@]*:)[^\s/@]+(?=@)")
_NAMED_SECRET = re.compile(
    r"""(["']?\b[\w-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|private[_-]?key"""
    r"""|access[_-]?key|credentials?)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&)}\]]+)""",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE)


def redact(value: Any, *, task: str, part: str) -> Any:
    """Return what may be shown of `value`, which is a `part` of a job of `task`. Never raise."""
    try:
        return _hook()(value, task=task, part=part)
    except Exception as error:
        name = type(error).__name__  # not its text, which may hold the value
        emit("redaction.failed", level=logging.WARNING, task=task, part=part, error=name)
        return FAILED


def redact_text(text: str, *, task: str, part: str) -> str:
    """Return what may be shown of `text`, as text whatever the hook returns."""
    return str(redact(text, task=task, part=part)) if text else ""


def hide_secrets(value: Any, *, task: str = "", part: str = "result") -> Any:
    """Return `value` without what looks like a secret: the default hook, for yours to call."""
    if part == "arguments" and isinstance(value, Mapping):
        args, kwargs = value.get("args"), value.get("kwargs")
        if isinstance(args, list) and isinstance(kwargs, Mapping):
            return {"args": _positional(task, args), "kwargs": _without_secrets(kwargs, 0)}
    return _without_secrets(value, 0)


def is_secret_name(name: str) -> bool:
    """Return whether what bears this name is usually secret."""
    plain = _NO_LETTER.sub("", name.lower())
    return plain in _SECRET_NAMES or any(word in plain for word in _SECRET_WORDS)


def hide_in_text(text: str) -> str:
    """Return `text` without passwords in URLs, and what stands behind a secret's name."""
    text = _URL_PASSWORD.sub(rf"\1{HIDDEN}", text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    return _NAMED_SECRET.sub(rf"\1{HIDDEN}", text)


def _without_secrets(value: Any, depth: int) -> Any:
    if depth > MAX_PAYLOAD_DEPTH:
        return HIDDEN
    if isinstance(value, str):
        return hide_in_text(value)
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if is_secret_name(str(key)) else _without_secrets(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(item, depth + 1) for item in value]
    return value


def _positional(task: str, args: list[Any]) -> list[Any]:
    names = _parameter_names(task)
    return [
        HIDDEN
        if position < len(names) and is_secret_name(names[position])
        else _without_secrets(value, 0)
        for position, value in enumerate(args)
    ]


def _parameter_names(task: str) -> list[str]:
    try:
        found = registry.get(task)
    except TaskNotRegistered:
        return []
    return list(parameters_of(found.func, found.takes_context))


def hook_path() -> str | None:
    """Return the dotted path that the setting names, None for the default."""
    site = getattr(settings, "JOBQUEUE", {})
    return site.get("REDACT") if isinstance(site, Mapping) else None


def _hook() -> Redact:
    path = hook_path()
    return hide_secrets if path is None else _imported(path)


@lru_cache(maxsize=8)
def _imported(path: str) -> Redact:
    return import_string(path)  # type: ignore[no-any-return]
