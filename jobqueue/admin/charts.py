"""Small charts as SVG, with their numbers beside them for whoever does not see them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobqueue.admin import marks

WIDTH, HEIGHT = 120, 24


def sparkline(counts: Sequence[int]) -> SafeString:
    """Return counts over time as a row of bars, with their sum and highest as its text."""
    label = _("%(total)s in all, at most %(most)s at a time") % {
        "total": f"{sum(counts):,}",
        "most": f"{max(counts, default=0):,}",
    }
    return _svg(counts, label, WIDTH, HEIGHT, "jq-spark")


def bars(starts: Sequence[datetime], counts: Sequence[int], title: str) -> dict[str, Any]:
    """Return a chart and the same as rows: when, how many; without the empty ones."""
    rows = [(marks.moment(at), f"{n:,}") for at, n in zip(starts, counts, strict=False) if n]
    return {"svg": _svg(counts, title, 600, 80, "jq-bars"), "rows": rows, "title": title}


def _svg(counts: Sequence[int], label: str, width: int, height: int, name: str) -> SafeString:
    most, each = max(counts, default=0) or 1, width / max(len(counts), 1)
    drawn = format_html_join(
        "",
        '<rect x="{}" y="{}" width="{}" height="{}"/>',
        (
            (
                f"{n * each:.2f}",
                f"{height - count / most * height:.2f}",
                f"{each * 0.8:.2f}",
                f"{count / most * height:.2f}",
            )
            for n, count in enumerate(counts)
            if count
        ),
    )
    return format_html(
        '<svg class="{}" role="img" viewBox="0 0 {} {}" preserveAspectRatio="none">'
        "<title>{}</title>{}</svg>",
        name,
        width,
        height,
        label,
        drawn,
    )
