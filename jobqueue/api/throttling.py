"""How many requests a caller may send: by scope, counted in Django's cache.

A sliding window: what was counted in this period, and the part of the last period that the window
still covers. Two operations of the cache a request. A refused request does not count, so that
waiting for Retry-After is enough. Requests at the same instant may pass a few more than the limit.

The counts are only as shared as the cache: with LocMemCache each process counts for itself. A
cache that fails lets requests pass, and says so in the log: the queue must not stop for it.

Anonymous requests (probes, and credentials that were refused) count by address: REMOTE_ADDR, or
what REST framework's NUM_PROXIES says about X-Forwarded-For.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from dataclasses import dataclass
from typing import Any

from django.core.cache import caches
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from jobqueue.events import emit
from jobqueue.surfaces import Rate, api_options

ANONYMOUS = "anonymous"
ROUNDING = 1e-6
"""Parts of a request: whoever has waited as told must not be refused for one."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What is left of a scope: requests, and seconds until there are more."""

    scope: str
    rate: Rate
    left: int
    seconds: int
    is_exceeded: bool = False

    def headers(self) -> dict[str, str]:
        """Return the RateLimit headers (draft-ietf-httpapi-ratelimit-headers)."""
        return {
            "RateLimit-Policy": f'"{self.scope}";q={self.rate.requests};w={self.rate.seconds}',
            "RateLimit": f'"{self.scope}";r={self.left};t={self.seconds}',
        }


def spend(scope: str, who: str, now: float | None = None) -> Quota | None:
    """Count one request of `who`; return what is left, None where nothing is limited."""
    options = api_options()
    rate = options.throttles[scope]
    if rate is None:
        return None
    try:
        return _counted(caches[options.throttle_cache], scope, who, rate, now or time.time())
    except Exception as error:  # whatever the cache's client raises
        emit("api.throttle_failed", level=logging.WARNING, scope=scope, error=type(error).__name__)
        return None


def address_of(request: Any) -> str:
    """Return whose anonymous requests these are."""
    if api_settings.NUM_PROXIES:
        return str(BaseThrottle().get_ident(request))
    return str(request.META.get("REMOTE_ADDR", ""))


def _counted(cache: Any, scope: str, who: str, rate: Rate, now: float) -> Quota:
    window = int(now // rate.seconds)
    passed = now / rate.seconds - window
    this, last = (_key(scope, who, rate, number) for number in (window, window - 1))
    counts = cache.get_many([this, last])
    current, before = counts.get(this, 0), counts.get(last, 0)
    used = current + before * (1 - passed)
    if used + 1 > rate.requests + ROUNDING:
        wait = _wait(current, before, passed, rate)
        return Quota(scope, rate, 0, wait, is_exceeded=True)
    _count(cache, this, rate)
    left = max(int(rate.requests - used - 1), 0)
    return Quota(scope, rate, left, max(math.ceil(rate.seconds * (1 - passed)), 1))


def _wait(current: int, before: int, passed: float, rate: Rate) -> int:
    """Return the seconds after which one more request fits into the window."""
    room = rate.requests - 1
    if current <= room:  # once enough of the last period has slid out
        share = 1 - (room - current) / before - passed
    else:  # all of the last period, and then a part of this one
        share = 2 - room / current - passed
    return max(math.ceil(share * rate.seconds), 1)


def _count(cache: Any, key: str, rate: Rate) -> None:
    try:
        cache.incr(key)
    except ValueError:  # not there yet
        if not cache.add(key, 1, timeout=2 * rate.seconds):
            cache.incr(key)


def _key(scope: str, who: str, rate: Rate, window: int) -> str:
    """Return a key that any cache takes: a name may hold what memcached does not."""
    digest = hashlib.blake2b(who.encode(errors="replace"), digest_size=16).hexdigest()
    return f"jobqueue:throttle:{scope}:{rate.seconds}:{window}:{digest}"
