"""Checks of the settings that belong to no single TASKS alias. No database is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import import_string

from jobqueue.conf import Options, jobqueue_aliases, parse

SITE_KEYS = ("ADMIN", "API", "LIVE", "REDACT")
"""The keys of the JOBQUEUE setting."""

SHARED = {
    "retention": "whoever prunes deletes jobs of both, so the shorter time wins",
    "action_retention": "whoever prunes deletes acts on both, so the shorter time wins",
    "scrub_arguments": "whoever prunes scrubs jobs of both, so the shorter time wins",
    "lease_seconds": "a reaper waits its own lease after it connected, and watches workers of both",
    "aging_seconds": "in a queue that both use their priorities are worth different times",
}
"""Options that reach beyond their alias: what differing ones do."""


def check_apps() -> Iterator[CheckMessage]:
    """Yield what is wrong with the order of INSTALLED_APPS."""
    names = [config.name for config in apps.get_app_configs()]
    if {"jobqueue", "channels"} <= set(names) and names.index("channels") < names.index("jobqueue"):
        yield Error(
            'INSTALLED_APPS names "channels" before "jobqueue": its runworker command hides ours, '
            "and waits for channels of that name instead of running jobs.",
            hint='Move "jobqueue" before "channels"; ours hands over when it is given channels.',
            id="jobqueue.E010",
        )


def check_site_setting() -> Iterator[CheckMessage]:
    """Yield what is wrong with the JOBQUEUE setting."""
    site: Any = getattr(settings, "JOBQUEUE", {})
    if not isinstance(site, Mapping):
        yield Error(
            "The setting JOBQUEUE must be a dict.",
            hint=f"Its keys are {', '.join(SITE_KEYS)}.",
            id="jobqueue.E011",
        )
        return
    for key in site:
        if key not in SITE_KEYS:
            yield Error(
                f"The setting JOBQUEUE has the unknown key {key!r}.",
                hint=f"Known are {', '.join(SITE_KEYS)}; options of the engine go into "
                'TASKS[alias]["OPTIONS"].',
                id="jobqueue.E011",
            )
    yield from _redact(site.get("REDACT"))


def _redact(path: Any) -> Iterator[CheckMessage]:
    """Yield why the REDACT hook cannot be used, if it cannot."""
    if path is None:
        return
    try:
        if callable(import_string(path)):
            return
        why = "it is not callable"
    except Exception as error:  # any error counts: it is the project's code
        why = f"{type(error).__name__}: {error}"
    yield Error(
        f"JOBQUEUE: REDACT names {path!r}, which cannot be used: {why}. Until then arguments, "
        "results and errors are not shown at all.",
        hint="Name a function (value, *, task, part) that returns what may be shown.",
        id="jobqueue.E011",
    )


def check_shared_databases() -> Iterator[CheckMessage]:
    """Yield where aliases that share a database disagree about what they share."""
    parsed = {alias: _options(alias) for alias in jobqueue_aliases()}
    for one, other in combinations(parsed, 2):
        ours, theirs = parsed[one], parsed[other]
        if ours.database != theirs.database:
            continue
        for name, why in SHARED.items():
            if getattr(ours, name) != getattr(theirs, name):
                yield Warning(
                    f"TASKS[{one!r}] and TASKS[{other!r}] share database {ours.database!r} and "
                    f"differ in {name.upper()}: {why}.",
                    hint=f"Give both the same {name.upper()}, or databases of their own.",
                    id="jobqueue.W004",
                )


def _options(alias: str) -> Options:
    raw = settings.TASKS[alias].get("OPTIONS", {})
    return parse(raw if isinstance(raw, Mapping) else {})[0]
