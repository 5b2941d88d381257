"""Pieces of HTML that all pages share: texts of strangers, states, times, spans of time, ids.

Names, arguments and errors come from whoever can enqueue a job, so everything is escaped, isolated
from the direction of what stands around it (``<bdi>``), and rid of characters that steer: those
are shown as escapes. No state is told by its color alone, and each time has its exact value.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobqueue.admin import words

NOTHING = "–"
MAX_CELL = 200
"""Characters of a text in a list."""

_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def visible(value: Any) -> str:
    """Return a text with what would steer a terminal or the direction of writing as escapes."""
    return _STEERING.sub(lambda m: m.group().encode("unicode_escape").decode(), str(value))


def cut(value: Any, most: int = MAX_CELL) -> str:
    """Return a text, shortened with a mark where it is too long."""
    text = str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def text(value: Any, most: int = MAX_CELL) -> SafeString:
    """Return somebody's text, for the middle of a page."""
    return format_html("<bdi>{}</bdi>", visible(cut(value, most)))


def code(value: Any, most: int = MAX_CELL) -> SafeString:
    """Return a name or id, which reads from left to right in every language."""
    return format_html('<bdi class="jq-code" dir="ltr">{}</bdi>', visible(cut(value, most)))


def dotted(value: Any, most: int = MAX_CELL) -> SafeString:
    """Return a dotted name that is broken at its dots and underscores, and nowhere else."""
    parts = re.split(r"(?<=[._])", visible(cut(value, most)))
    joined = format_html_join(SafeString("<wbr>"), "{}", ((part,) for part in parts))
    return format_html('<bdi class="jq-name">{}</bdi>', joined)


def badge(name: str, label: str | None = None) -> SafeString:
    """Return a state as an icon and a word."""
    return format_html(
        '<span class="jq-badge jq-{}"><span aria-hidden="true">{}</span> {}</span>',
        words.TONES.get(name, "calm"),
        words.ICONS.get(name, "•"),
        visible(cut(label or words.state(name), 40)),
    )


def moment(value: datetime | None) -> SafeString | str:
    """Return a time in the reader's zone, with its exact value in UTC."""
    if value is None:
        return NOTHING
    exact = value.astimezone(UTC) if timezone.is_aware(value) else value
    try:
        local = timezone.localtime(value) if timezone.is_aware(value) else value
    except (OverflowError, ValueError):  # year 9999 or 1, in a zone that would leave it
        local = exact
    shown = local.strftime("%Y-%m-%d %H:%M:%S") if local.year >= 1000 else local.isoformat(" ")
    return _time(value, exact, shown)


def since(value: datetime | None) -> SafeString | str:
    """Return how long ago a time was, with its exact value in UTC; "" where nobody knows."""
    now = timezone.now()
    if value is None or timezone.is_naive(value) != timezone.is_naive(now):
        return ""
    exact = value.astimezone(UTC) if timezone.is_aware(value) else value
    return _time(value, exact, ago((now - value).total_seconds()))


def _time(value: datetime, exact: datetime, shown: str) -> SafeString:
    zone = "" if timezone.is_aware(value) else " " + _("(no time zone)")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        exact.isoformat(),
        exact.isoformat(" ") + zone,
        shown,
    )


def span(seconds: float | None) -> str:
    """Return a span of time in its two largest units, such as "1.2 s" or "3 h 5 min".

    The live page says the same: `duration` in frontend/src/lib/format.ts.
    """
    if seconds is None:
        return NOTHING
    if 0 < seconds < 0.9995:
        return f"{max(1, round(seconds * 1_000))} {_('ms')}"
    tenths = round(max(seconds, 0.0), 1)
    if tenths < 10:
        return f"{number_format(tenths, 0 if tenths.is_integer() else 1)} {_('s')}"
    return _two_units(round(seconds))


def _two_units(seconds: int) -> str:
    sizes = ((86_400, _("d")), (3_600, _("h")), (60, _("min")), (1, _("s")))
    first = next(n for n, (size, unit) in enumerate(sizes) if seconds >= size)
    parts = []
    for size, unit in sizes[first : first + 2]:
        if count := seconds // size:
            parts.append(f"{number_format(count)} {unit}")
        seconds %= size
    return " ".join(parts)


def ago(seconds: float) -> str:
    """Return how long ago something was."""
    if seconds < 1:
        return _("just now")
    return _("%(span)s ago") % {"span": span(seconds)}


def number(value: Any) -> str:
    """Return a number with its thousands apart; a `Count` says what it is ("10,000+", "~2,000")."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def size(count: int) -> str:
    """Return a number of bytes."""
    if count < 10_000:
        return ngettext("%(count)s byte", "%(count)s bytes", count) % {"count": f"{count:,}"}
    unit, parts = ("KiB", 1024) if count < 10 * 1024**2 else ("MiB", 1024**2)
    return f"{count / parts:,.0f} {unit}"


def budget(used: int, most: int) -> SafeString:
    """Return how much of something is used, such as "2/5"."""
    return format_html('<span dir="ltr">{}/{}</span>', used, most)


def note(value: Any) -> SafeString:
    """Return a text that stands back."""
    return format_html('<span class="jq-note">{}</span>', value)


def nothing(value: Any) -> SafeString:
    """Return a value that tells nothing: on a phone its cell is left out."""
    return format_html('<span class="jq-nothing">{}</span>', value)


def explained(value: Any, meaning: Any) -> SafeString:
    """Return a value with what its name means, for whoever meets it for the first time."""
    return format_html("{} {}", value, note(meaning))


def attempts(ended: int, failed: int, most: int | None) -> SafeString:
    """Return how many attempts there were, and if some failed, how much of the budget that is."""
    words_of_it = ngettext("%(ended)s attempt", "%(ended)s attempts", ended)
    if failed and most is not None:
        words_of_it = _("%(failed)s of %(most)s failures")
    elif failed:
        words_of_it = ngettext("%(failed)s failure", "%(failed)s failures", failed)
    return note(words_of_it % {"ended": ended, "failed": failed, "most": most})


def clamped(value: Any) -> SafeString:
    """Return a text of which a list shows the first lines."""
    return format_html('<span class="jq-clamp">{}</span>', value)


def link(url: str, shown: Any) -> SafeString:
    """Return a link; `shown` is escaped unless it is one of the pieces above."""
    return format_html('<a href="{}">{}</a>', url, shown)


def lines(parts: list[Any]) -> SafeString:
    """Return what is there of `parts`, one below the other; on a phone it may be one after it."""
    return format_html_join(SafeString("<br> "), "{}", ((part,) for part in parts if part))


def short_id(value: UUID | str) -> SafeString:
    """Return an id without its middle: the beginning says when, the end says which."""
    whole = str(value)
    return format_html(
        '<bdi class="jq-code" dir="ltr" title="{}">{}…{}</bdi>', whole, whole[:8], whole[-6:]
    )


def last_error(error_class: str, message: str, reason: str = "") -> SafeString | str:
    """Return why a job is where it is: its reason, and the last error on one line."""
    name = error_class.rpartition(".")[2]
    first = message.split("\n", 1)[0]
    parts = [text(reason)] if reason else []
    if name or first:
        error = format_html("<b>{}</b>", dotted(name)) if name else ""
        between = ": " if name and first else ""
        parts.append(format_html("{}{}{}", error, between, text(first) if first else ""))
    return lines(parts) if parts else NOTHING
