"""Whether the project's URLs include one of our modules of addresses."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.urls import get_resolver


def is_served(urls: str) -> bool:
    """Return whether the project's URLs include the module of that name."""
    if not getattr(settings, "ROOT_URLCONF", None):
        return False
    try:
        patterns = get_resolver().url_patterns
    except Exception:
        return False  # Django's own check of the URLs says why
    return urls in sys.modules and _includes(patterns, urls)


def _includes(patterns: Any, urls: str) -> bool:
    return any(
        getattr(getattr(p, "urlconf_name", None), "__name__", "") == urls
        or _includes(getattr(p, "url_patterns", ()), urls)
        for p in patterns
    )
