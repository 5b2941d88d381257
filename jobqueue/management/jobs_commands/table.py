"""Plain tables for a terminal: no frame, no dependency, colors outside the widths."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

GAP = "  "
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

Paint = Callable[[str], str]


def render(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    paint: Callable[[int, str], Paint | None] = lambda column, text: None,
    header_paint: Paint = str,
    width: int | None = None,
) -> list[str]:
    """Return the lines of a table.

    right: columns that are aligned to the right (numbers). paint: returns the color of a cell,
    None for none. width: the last column is cut so that a line fits; None cuts nothing.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [
        max([text_width(headers[n]), *(text_width(row[n]) for row in cells)])
        for n in range(len(headers))
    ]
    if width is not None:
        taken = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(width - taken, 10))

    def line(row: Sequence[str], color: Callable[[int, str], Paint | None]) -> str:
        padded = [_pad(cut(text, widths[n]), widths[n], n in right) for n, text in enumerate(row)]
        painted = [(color(n, row[n]) or str)(text) for n, text in enumerate(padded)]
        return GAP.join(painted).rstrip()

    return [line(headers, lambda n, text: header_paint), *(line(row, paint) for row in cells)]


def printable(text: str) -> str:
    """Return `text` on one line, with what could move a terminal's cursor or color as escapes.

    What is shown may come from anybody who can enqueue a job.
    """
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def cut(text: str, width: int) -> str:
    """Return `text`, shortened to `width` columns with a mark where it is too long."""
    if text_width(text) <= width:
        return text
    kept = text
    while kept and text_width(kept) > width - 1:
        kept = kept[:-1]
    return f"{kept}…"


def text_width(text: str) -> int:
    """Return how many columns of a terminal `text` takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _pad(text: str, width: int, is_right: bool) -> str:
    padding = " " * (width - text_width(text))
    return padding + text if is_right else text + padding
