"""How the project sends mail: what its settings say about email backends, until Django 6.0 and from
6.1, where MAILERS names several. For the worker, the checks and `jobqueue.email`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from jobqueue.compat import DEFAULT_TASK_BACKEND_ALIAS

MAIL = "jobqueue.email"


def mail_aliases() -> set[str]:
    """Return the TASKS aliases whose jobs send the project's mail; empty where none do."""
    return {
        str(options.get("task_backend", DEFAULT_TASK_BACKEND_ALIAS))
        for path, options in _named_backends()
        if _is_ours(path)
    }


def mailers() -> Mapping[str, Any] | None:
    """Return the setting MAILERS; None where there is none, as until Django 6.0."""
    return getattr(settings, "MAILERS", None)


def why_unusable(name: str) -> str | None:
    """Return why the option EMAIL_BACKEND cannot be `name`; None if it can."""
    aliases = mailers()
    if aliases is None:
        path = name
    elif name in aliases:
        path = str(aliases[name].get("BACKEND", ""))
    else:
        return f"it is no alias of MAILERS, which has {', '.join(aliases) or 'none'}"
    if _is_ours(path):
        return "it is jobqueue's own backend: every message would become another job for ever"
    if aliases is None:
        try:
            import_string(path)
        except Exception as error:
            return f"it is no email backend that can be imported: {error}"
    return None


def _named_backends() -> list[tuple[str, Mapping[str, Any]]]:
    """Return the email backends that the project names, with their options."""
    aliases = mailers()
    if aliases is not None:
        each = aliases.values()
        return [(str(one.get("BACKEND", "")), one.get("OPTIONS") or {}) for one in each]
    # Asked in this order: to read the default is deprecated in Django 6.1.
    if not settings.is_overridden("EMAIL_BACKEND"):  # type: ignore[misc]
        return []
    return [(settings.EMAIL_BACKEND, {})]


def _is_ours(path: str) -> bool:
    return path.startswith(f"{MAIL}.")
