"""Options of the surfaces: what the setting JOBQUEUE holds. Pure.

    JOBQUEUE = {
        "API": {"MAX_BATCH": 200, "THROTTLES": {"enqueue": "600/min"}},
        "LIVE": {"RECHECK_SECONDS": 10},
        "ADMIN": {"EFFECTS": ["shop.Charge.job_id"]},
    }

`parse_api` and its like never raise: they return what they could read and what is wrong, which the
system checks print; `api_options` and its like are what the surfaces themselves ask, with the
default for each option that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.dispatch import receiver

from jobqueue.conf import DAY_SECONDS, MAX_PAYLOAD_DEPTH, OptionProblem
from jobqueue.option_types import choice, number, option, paths, text, whole

SESSION = "rest_framework.authentication.SessionAuthentication"
TOKEN = "rest_framework.authentication.TokenAuthentication"

DEFAULT_THROTTLES: dict[str, str | None] = {
    "anonymous": "300/min",
    "read": "3000/min",
    "enqueue": "6000/min",
    "batch": "60/min",
    "operate": "600/min",
}
"""Requests by scope: "anonymous" by address, the others by caller."""

_PERIODS = {"s": 1, "sec": 1, "min": 60, "m": 60, "h": 3_600, "hour": 3_600, "d": 86_400}
_RATE = re.compile(r"(\d{1,9})/(s|sec|m|min|h|hour|d)")


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests in so many seconds."""

    requests: int
    seconds: int


def parse_rate(value: Any) -> Rate:
    """Return text such as "600/min" as a Rate; raise ValueError for what is none."""
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[1]) < 1:
        raise ValueError('must be a rate such as "600/min" (s, min, h or d)')
    return Rate(int(match[1]), _PERIODS[match[2]])


def _throttles(value: Any) -> dict[str, Rate | None]:
    if not isinstance(value, Mapping) or not set(value) <= set(DEFAULT_THROTTLES):
        raise ValueError(f"must be a dict of rates by scope: {', '.join(DEFAULT_THROTTLES)}")
    merged = DEFAULT_THROTTLES | dict(value)
    return {s: None if rate is None else parse_rate(rate) for s, rate in merged.items()}


def _classes(value: Any) -> tuple[str, ...]:
    found = paths(value)
    if not found:
        raise ValueError("must name at least one class: no view of the API is open")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions:
    """JOBQUEUE["API"]; each field is the upper-case key in lower case."""

    backend: str = option(
        "default", text, "The TASKS alias whose jobs the API shows and changes, and enqueues with."
    )
    authentication: tuple[str, ...] = option(
        (SESSION, TOKEN),
        _classes,
        "Paths of REST framework's authentication classes, or of your own, tried in this order.",
    )
    idempotency_key: str = option(
        "tokens",
        choice("always", "tokens", "never"),
        "Who must send an Idempotency-Key with what makes jobs: everybody, everybody but sessions, "
        "or nobody.",
    )
    max_body_bytes: int = option(
        2 * 1024 * 1024,
        whole(1_024, 64 * 1024 * 1024),
        "Bytes of a request's body; a larger one is 413 and is not read.",
    )
    max_depth: int = option(
        32,
        whole(4, MAX_PAYLOAD_DEPTH),
        "Levels of lists and objects in a body: what nests deeper is an attack, or a mistake.",
    )
    max_batch: int = option(1_000, whole(1, 10_000), "Jobs in one POST to `/jobs/batch/`.")
    page_size: int = option(50, whole(1, 1_000), "Entries of a page when no `limit` is given.")
    max_page_size: int = option(200, whole(1, 1_000), "Entries of the longest page.")
    min_priority: int = option(-100, whole(-100, 100), "Lowest priority that a client may give.")
    max_priority: int = option(100, whole(-100, 100), "Highest priority that a client may give.")
    max_delay: float = option(
        366 * DAY_SECONDS,
        number(0, 10 * 366 * DAY_SECONDS),
        "Seconds from now that `run_after` may lie ahead.",
    )
    max_wait: float = option(
        20.0,
        number(0, 60),
        "Seconds that `?wait=` may hold a request; each holds a thread of a WSGI server.",
    )
    throttles: dict[str, Rate | None] = option(
        lambda: _throttles({}),
        _throttles,
        'Requests by scope, such as "600/min": "anonymous" by address; "read", "enqueue", "batch" '
        'and "operate" by caller; None: no limit.',
        factory=True,
    )
    throttle_cache: str = option(
        "default", text, "The alias in CACHES that counts requests; one that all processes share."
    )


def parse_api(raw: Any) -> tuple[ApiOptions, list[OptionProblem]]:
    """Return the options in `raw` and what is wrong with it; a wrong one keeps its default."""
    options, problems = _parse(ApiOptions, "API", raw)
    return options, [*problems, *_contradictions(options)]


def _contradictions(options: ApiOptions) -> list[OptionProblem]:
    problems = []
    if options.page_size > options.max_page_size:
        problems.append(OptionProblem("PAGE_SIZE", "must not be more than MAX_PAGE_SIZE."))
    if options.min_priority > options.max_priority:
        problems.append(OptionProblem("MIN_PRIORITY", "must not be more than MAX_PRIORITY."))
    return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """JOBQUEUE["LIVE"]; each field is the upper-case key in lower case."""

    backend: str = option("default", text, "The TASKS alias whose jobs are pushed to the page.")
    recheck_seconds: float = option(
        30.0,
        number(1, 60),
        "Seconds after which session, user and permissions of a WebSocket are looked at again: the "
        "longest that somebody stays who may no longer. A look is a handful of small queries.",
    )
    max_connections: int = option(
        500, whole(1, 100_000), "WebSockets of one ASGI process; a page beyond them polls."
    )
    max_per_user: int = option(
        20, whole(1, 10_000), "WebSockets of one user in one process: more tabs than anybody reads."
    )


def parse_live(raw: Any) -> tuple[LiveOptions, list[OptionProblem]]:
    """Return the options in `raw` and what is wrong with it; a wrong one keeps its default."""
    return _parse(LiveOptions, "LIVE", raw)


def _effects(value: Any) -> tuple[str, ...]:
    found = paths(value)
    if wrong := [name for name in found if name.count(".") != 2]:
        raise ValueError(f"must name fields as APP.MODEL.FIELD, which {wrong[0]!r} is not")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminOptions:
    """JOBQUEUE["ADMIN"]; each field is the upper-case key in lower case."""

    backend: str = option(
        "default",
        text,
        "The TASKS alias whose jobs the admin shows and changes; aliases of the same database "
        "share its pages.",
    )
    effects: tuple[str, ...] = option(
        (),
        _effects,
        "Fields of your models that hold the id of the job that wrote a row, as APP.MODEL.FIELD: "
        "such rows are listed on the job's page. Each needs an index.",
    )


def parse_admin(raw: Any) -> tuple[AdminOptions, list[OptionProblem]]:
    """Return the options in `raw` and what is wrong with it; a wrong one keeps its default."""
    return _parse(AdminOptions, "ADMIN", raw)


def _parse[O](cls: type[O], name: str, raw: Any) -> tuple[O, list[OptionProblem]]:
    if not isinstance(raw, Mapping):
        return cls(), [OptionProblem(name, f"must be a dict, not {raw!r}.")]
    known = {f.name.upper(): f for f in fields(cls)}  # type: ignore[arg-type] # a dataclass
    values: dict[str, Any] = {}
    problems: list[OptionProblem] = []
    for key, value in raw.items():
        if key not in known:
            problems.append(OptionProblem(key, f"is unknown; known are {', '.join(known)}."))
            continue
        try:
            values[known[key].name] = known[key].metadata["parse"](value)
        except (ValueError, TypeError) as error:
            problems.append(OptionProblem(key, f"{error}, not {value!r}."))
    return cls(**values), problems


@lru_cache(maxsize=1)
def api_options() -> ApiOptions:
    """Return the options of the API. Cached until the setting changes."""
    return parse_api(_site("API"))[0]


@lru_cache(maxsize=1)
def live_options() -> LiveOptions:
    """Return the options of the live page. Cached until the setting changes."""
    return parse_live(_site("LIVE"))[0]


@lru_cache(maxsize=1)
def admin_options() -> AdminOptions:
    """Return the options of the admin. Cached until the setting changes."""
    return parse_admin(_site("ADMIN"))[0]


def _site(key: str) -> Any:
    site = getattr(settings, "JOBQUEUE", {})
    return site.get(key, {}) if isinstance(site, Mapping) else {}


@receiver(setting_changed)
def _forget_options(*, setting: str, **kwargs: Any) -> None:
    if setting == "JOBQUEUE":
        api_options.cache_clear()
        live_options.cache_clear()
        admin_options.cache_clear()
