"""Small charts as SVG, with their numbers beside them for whoever does not see them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobqueue.admin import marks

WIDTH, HEIGHT = 120, 24


def sparkline(counts: Sequence[int], failed: Sequence[int] = ()) -> SafeString:
    """Return counts over time as a row of bars, with their sum and highest as its text."""
    label = _("%(total)s in all, at most %(most)s at a time") % {
        "total": f"{sum(counts):,}",
        "most": f"{max(counts, default=0):,}",
    }
    return _svg(counts, failed, label, WIDTH, HEIGHT, "jq-spark")


def bars(
    starts: Sequence[datetime],
    counts: Sequence[int],
    title: str,
    *,
    step_seconds: float,
    failed: Sequence[int] = (),
) -> dict[str, Any]:
    """Return a chart with its highest bar, beginning and end, and the same as rows.

    The last step is still open, as of all statistics: that is said where its bar would mislead.
    failed: how many of each count, drawn in another color; all or none need no legend. Rows leave
    out the empty steps.
    """
    failed = failed or [0] * len(counts)
    rows = [
        (_open(at) if at == starts[-1] else marks.moment(at), f"{n:,}", f"{bad:,}")
        for at, n, bad in zip(starts, counts, failed, strict=False)
        if n
    ]
    most = {"most": f"{max(counts, default=0):,}", "span": marks.span(step_seconds)}
    return {
        "svg": _svg(counts, failed, title, 600, 80, "jq-bars"),
        "rows": rows,
        "title": title,
        "most": _("The highest bar: %(most)s in %(span)s") % most,
        "failed": f"{sum(failed):,}" if 0 < sum(failed) < sum(counts) else "",
        "first": marks.moment(starts[0]) if starts else "",
        "last": _open(starts[-1] + timedelta(seconds=step_seconds)) if starts else "",
    }


def _open(at: datetime) -> SafeString:
    return marks.explained(marks.moment(at), _("(not over yet)"))


def _svg(
    counts: Sequence[int], failed: Sequence[int], label: str, width: int, height: int, name: str
) -> SafeString:
    scale = height / (max(counts, default=0) or 1)
    return format_html(
        '<svg class="{}" role="img" viewBox="0 0 {} {}" preserveAspectRatio="none">'
        '<title>{}</title>{}<g class="jq-failed">{}</g></svg>',
        name,
        width,
        height,
        label,
        _rectangles(counts, scale, width, height),
        _rectangles(failed, scale, width, height),
    )


def _rectangles(counts: Sequence[int], scale: float, width: int, height: int) -> SafeString:
    each = width / max(len(counts), 1)
    return format_html_join(
        "",
        '<rect x="{}" y="{}" width="{}" height="{}"/>',
        (
            (
                f"{n * each:.2f}",
                f"{height - count * scale:.2f}",
                f"{each * 0.8:.2f}",
                f"{count * scale:.2f}",
            )
            for n, count in enumerate(counts)
            if count
        ),
    )
