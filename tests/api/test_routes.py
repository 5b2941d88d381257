"""No route is open: every method of every view under the prefix is called without credentials."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.urls import URLPattern, get_resolver

from jobqueue.api import urls
from jobqueue.api.access import METHODS, OPEN, Needs, needs, needs_of
from jobqueue.api.views import ApiView, NotFoundView
from tests.api.conftest import PREFIX, Api, problem

ANYTHING = {
    "uuid": "01890a5d-ac96-774b-bcce-b302099a8057",
    "str": "default",
    "int": "1",
    "slug": "a",
    "path": "a",
}


def routes() -> Iterator[tuple[str, URLPattern]]:
    """Yield each address under the prefix with something in its place-holders."""
    for pattern in urls.urlpatterns:
        if pattern.callback.cls is NotFoundView:
            continue
        values = {
            name: next(
                value for kind, value in ANYTHING.items() if kind in type(c).__name__.lower()
            )
            for name, c in pattern.pattern.converters.items()
        }
        address = str(pattern.pattern)
        for name, value in values.items():
            for kind in (*ANYTHING, "queue", "job"):
                address = address.replace(f"<{kind}:{name}>", value)
            address = address.replace(f"<{name}>", value)
        yield f"/{address}", pattern


def methods() -> Iterator[tuple[str, str, Any]]:
    for address, pattern in routes():
        for method in METHODS:
            declared = needs_of(pattern.callback.cls, method)
            if declared is not None:
                yield method, address, declared


CLOSED = [(m, a) for m, a, declared in methods() if declared.action != OPEN]
GUARDED = [(m, a, declared) for m, a, declared in methods() if declared.permission]
"""What is left out is open to every caller, and narrowed to their own jobs by the view."""
OPEN_ROUTES = {"/health/live/", "/health/ready/"}
"""The only addresses that answer without credentials."""


def test_every_view_under_the_prefix_is_one_of_ours():
    assert all(issubclass(pattern.callback.cls, ApiView) for pattern in urls.urlpatterns)
    resolver = get_resolver()
    assert {a for _, a, needed in methods() if needed.action == OPEN} == OPEN_ROUTES
    for address, pattern in routes():
        assert resolver.resolve(PREFIX + address).func.cls is pattern.callback.cls, address


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "address"), CLOSED)
def test_nothing_answers_without_credentials(anybody: Api, method: str, address: str):
    response = anybody.request(method, address)
    assert response.status_code == 401
    assert response["WWW-Authenticate"]
    if method != "head":
        problem(response, 401, "not-authenticated")


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "address", "needed"), GUARDED)
def test_nothing_is_allowed_to_a_caller_without_the_permission(
    make_caller: Any, method: str, address: str, needed: Needs
):
    response = make_caller().request(method, address)
    assert response.status_code == 403
    if method != "head":
        assert problem(response, 403, "permission-denied")["permission"] == needed.permission


def test_method_that_does_not_say_who_may_call_it_is_an_error():
    with pytest.raises(ImproperlyConfigured, match="post does not say who may call it"):

        class Open(ApiView):
            @needs(OPEN)
            def get(self, request): ...

            def post(self, request): ...


def test_needs_names_an_action_that_there_is():
    with pytest.raises(ImproperlyConfigured, match="no action"):
        needs("do_anything")
