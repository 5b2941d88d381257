"""Tracebacks for people: first the frames of the project's own code, then all of it.

What failed is nearly always where the project's own code was last; the frames of Django, of
libraries and of this queue around it are what one scrolls past. Only the text is read: nothing of
it is looked up on this machine, which may run other code than the worker did.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jobqueue.admin.marks import visible

MAX_FRAMES = 20
_FRAME = re.compile(
    r'^\s*File "([^"\n]{1,500})", line (\d+), in ([^\n]{1,200})\n((?!\s*File ").*)?', re.M
)
_FOREIGN = ("site-packages", "dist-packages", "/lib/python3", "<frozen ", "/jobqueue/")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of the project's own code."""

    file: str
    line: str
    function: str
    source: str


def own_frames(traceback: str) -> list[Frame]:
    """Return the frames of the project's own code, the innermost first."""
    found = [
        Frame(*map(visible, (file, line, function.strip(), source.strip())))
        for file, line, function, source in _FRAME.findall(traceback)
        if not any(mark in file for mark in _FOREIGN)
    ]
    return found[::-1][:MAX_FRAMES]
