"""Answers are JSON: whoever does not accept that is told so."""

from __future__ import annotations

from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.utils.mediatypes import media_type_matches

from jobqueue.api.problems import Problem

ACCEPTED = ("application/json", "application/problem+json")


class JSONOnly(BaseContentNegotiation):
    """Takes the view's own renderer, if the client accepts what it makes."""

    def select_parser(self, request: Any, parsers: list[BaseParser]) -> BaseParser:
        """Return the only parser; `jobqueue.api.parsing` has looked at the type."""
        return parsers[0]

    def select_renderer(
        self, request: Any, renderers: list[BaseRenderer], format_suffix: Any = None
    ) -> tuple[BaseRenderer, str]:
        """Return the view's renderer. Raise Problem if its type is not accepted."""
        renderer = renderers[0]
        accept = request.META.get("HTTP_ACCEPT", "*/*") or "*/*"
        wanted = [part.partition(";")[0].strip() for part in accept.split(",")]
        offered = ACCEPTED if renderer.media_type in ACCEPTED else (renderer.media_type,)
        if any(media_type_matches(w, o) for w in wanted for o in offered if "/" in w):
            return renderer, renderer.media_type
        raise Problem("not-acceptable")
