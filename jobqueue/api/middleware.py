"""Middleware, for the top of MIDDLEWARE: problem details also where the API is not even reached.

    MIDDLEWARE = ["jobqueue.api.middleware.problem_details", ...]

A host that is not allowed, or an error of other middleware, is answered by Django before any view,
in HTML. Under the API's prefix this makes a problem of it. The API works without, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import NoReverseMatch, reverse
from django.utils.decorators import sync_and_async_middleware

from jobqueue.api.problem_types import BY_STATUS
from jobqueue.api.problems import CONTENT_TYPE, Problem


@sync_and_async_middleware
def problem_details(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Make problems of errors under the API's prefix that others have answered."""
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            return _as_problem(request, await get_response(request))

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        return _as_problem(request, get_response(request))

    return answer


def _as_problem(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    kind = response.get("Content-Type", "").partition(";")[0]
    if response.status_code < 400 or kind in (CONTENT_TYPE, "application/json"):
        return response
    if not request.path.startswith(_prefix()):
        return response
    fallback = 500 if response.status_code >= 500 else 400
    code = BY_STATUS.get(response.status_code, BY_STATUS[fallback])
    return Problem(code).response()


def _prefix() -> str:
    """Return where the API is; what is nowhere begins with nothing that a path has."""
    try:
        return reverse("jobqueue_api:not-found")
    except NoReverseMatch:
        return "\x00"
