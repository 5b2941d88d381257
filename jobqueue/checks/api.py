"""Checks of the HTTP API, where the project's URLs include it. No database is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import import_string

from jobqueue.checks.served import is_served
from jobqueue.conf import jobqueue_aliases
from jobqueue.surfaces import TOKEN, ApiOptions, parse_api

URLS = "jobqueue.api.urls"
PER_PROCESS = ("LocMemCache", "DummyCache")
"""Caches that no other process sees."""


def check_api() -> Iterator[CheckMessage]:
    """Yield what is wrong with the API's options, and with what it needs where it is served."""
    site: Any = getattr(settings, "JOBQUEUE", {})
    options, problems = parse_api(site.get("API", {}) if isinstance(site, dict) else {})
    for problem in problems:
        yield Error(
            f"JOBQUEUE['API']: {problem.option} {problem.message}",
            hint="Until then its default is used.",
            id="jobqueue.E040",
        )
    if is_served(URLS):
        yield from _apps(options)
        yield from _authentication(options)
        yield from _backend(options)


def check_api_deployment() -> Iterator[CheckMessage]:
    """Yield what is wrong with the API only where it is open to others."""
    site: Any = getattr(settings, "JOBQUEUE", {})
    options, _ = parse_api(site.get("API", {}) if isinstance(site, dict) else {})
    if not is_served(URLS) or not any(options.throttles.values()):
        return
    backend = getattr(settings, "CACHES", {}).get(options.throttle_cache, {}).get("BACKEND", "")
    if backend.endswith(PER_PROCESS):
        yield Warning(
            f"The API counts requests in CACHES[{options.throttle_cache!r}], a "
            f"{backend.rpartition('.')[2]}: each process counts for itself, or none does.",
            hint="Use a cache that all processes share, and name it in JOBQUEUE['API'] as "
            "THROTTLE_CACHE.",
            id="jobqueue.W040",
        )


def _apps(options: ApiOptions) -> Iterator[CheckMessage]:
    if not apps.is_installed("rest_framework"):
        yield Error(
            'The API is served, and "rest_framework" is not in INSTALLED_APPS.',
            hint="Add it.",
            id="jobqueue.E041",
        )
    if TOKEN in options.authentication and not apps.is_installed("rest_framework.authtoken"):
        yield Error(
            "The API takes REST framework's tokens, and their app is not in INSTALLED_APPS: "
            "no request could be authenticated.",
            hint='Add "rest_framework.authtoken" and migrate, or name other classes in '
            "JOBQUEUE['API'] as AUTHENTICATION.",
            id="jobqueue.E041",
        )


def _authentication(options: ApiOptions) -> Iterator[CheckMessage]:
    for path in options.authentication:
        try:
            cls = import_string(path)
            if callable(getattr(cls, "authenticate", None)):
                continue
            why = "it has no method authenticate"
        except Exception as error:  # any error counts: it is the project's code
            why = f"{type(error).__name__}: {error}"
        yield Error(
            f"JOBQUEUE['API']: AUTHENTICATION names {path!r}, which cannot be used: {why}.",
            hint="Name classes as REST framework takes them, such as "
            "rest_framework.authentication.SessionAuthentication.",
            id="jobqueue.E042",
        )


def _backend(options: ApiOptions) -> Iterator[CheckMessage]:
    if options.backend not in jobqueue_aliases():
        yield Error(
            f"JOBQUEUE['API']: BACKEND is {options.backend!r}, which is no alias in TASKS of "
            "jobqueue's backend.",
            hint=f"Use one of {', '.join(jobqueue_aliases()) or 'none: add one'}.",
            id="jobqueue.E043",
        )
    if options.throttle_cache not in getattr(settings, "CACHES", {"default": {}}):
        yield Error(
            f"JOBQUEUE['API']: THROTTLE_CACHE is {options.throttle_cache!r}, which is not in "
            "CACHES.",
            hint="Name one of its aliases.",
            id="jobqueue.E043",
        )
