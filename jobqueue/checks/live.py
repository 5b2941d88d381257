"""Checks of the live page: its options, and what it needs where it is served."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from jobqueue.checks.served import is_served
from jobqueue.conf import jobqueue_aliases
from jobqueue.surfaces import parse_live

URLS = "jobqueue.live.urls"
NEEDED = ("django.contrib.auth", "django.contrib.sessions")
MANIFEST = "static/jobqueue/live/manifest.json"
IN_COOKIES = "django.contrib.sessions.backends.signed_cookies"


def check_live() -> Iterator[CheckMessage]:
    """Yield what is wrong with the page's options, and with what it needs where it is served."""
    site: Any = getattr(settings, "JOBQUEUE", {})
    options, problems = parse_live(site.get("LIVE", {}) if isinstance(site, dict) else {})
    for problem in problems:
        yield Error(
            f"JOBQUEUE['LIVE']: {problem.option} {problem.message}",
            hint="Until then its default is used.",
            id="jobqueue.E050",
        )
    if not is_served(URLS):
        return
    if options.backend not in jobqueue_aliases():
        yield Error(
            f"JOBQUEUE['LIVE']: BACKEND is {options.backend!r}, which is no alias in TASKS of "
            "jobqueue's backend.",
            hint=f"Use one of {', '.join(jobqueue_aliases()) or 'none: add one'}.",
            id="jobqueue.E050",
        )
    for name in NEEDED:
        if not apps.is_installed(name):
            yield Error(
                f'The live page is served, and "{name}" is not in INSTALLED_APPS.',
                hint="Add it, or include jobqueue.api.urls instead of jobqueue.urls.",
                id="jobqueue.E051",
            )


def check_live_deployment() -> Iterator[CheckMessage]:
    """Yield what is wrong with the page only where it is open to others."""
    if not is_served(URLS):
        return
    has_sockets = find_spec("channels") is not None
    if has_sockets and settings.SESSION_ENGINE == IN_COOKIES:
        yield Warning(
            "Sessions are kept in cookies: a WebSocket of the live page that is open in another "
            "process outlives a logout, until the cookie expires.",
            hint="Keep sessions in the database or a cache, or configure a channel layer.",
            id="jobqueue.W050",
        )
    yield from _is_built()


def _is_built() -> Iterator[CheckMessage]:
    if not (Path(apps.get_app_config("jobqueue").path) / MANIFEST).exists():
        yield Warning(
            "The live page is served, and has not been built.",
            hint="The wheel brings it; in a checkout run `make page`.",
            id="jobqueue.W051",
        )
