"""Callers of the API: users with tokens and permissions, and what they send and get."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.db import connection
from django.test import Client
from rest_framework.authtoken.models import Token

from jobqueue.api.fresh import Fresh
from jobqueue.conf import options_for
from jobqueue.storage import Storage, storage_for

PREFIX = "/jobqueue/api/v1"


class Api:
    """A client of the API under its prefix: `api.post("/jobs/", {"task": …})`."""

    def __init__(self, user: Any = None, **headers: str):
        self.user = user
        self.headers = headers
        # An unexpected exception is an answer here, as it is to a real client.
        self.client = Client(raise_request_exception=False)

    def get(self, path: str, query: Any = None, **headers: str) -> Any:
        return self.client.get(PREFIX + path, query, headers=self.headers | headers)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send `body` as JSON; text and bytes as they are; none without one."""
        sent = {} if body is None else {"data": body}
        if method.lower() not in ("get", "head"):
            sent["content_type"] = "application/json"
        send = getattr(self.client, method.lower())
        return send(PREFIX + path, headers=self.headers | headers, **sent)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.request("post", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.request("patch", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.request("put", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self.request("delete", path, **headers)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """Requests that other tests have sent are not counted, what they saw is looked at anew."""
    cache.clear()
    Fresh.forget_all()


@pytest.fixture
def anybody() -> Api:
    """A client without credentials."""
    return Api()


@pytest.fixture
def make_caller(db: None) -> Callable[..., Api]:
    """`make_caller("kim", "enqueue_job")`: a user with these permissions, by token."""

    def make(name: str = "kim", *permissions: str) -> Api:
        user = get_user_model().objects.create_user(name)
        user.user_permissions.set(found(permissions))
        token, _ = Token.objects.get_or_create(user=user)
        return Api(get_user_model().objects.get(pk=user.pk), Authorization=f"Token {token.key}")

    return make


def found(codenames: Iterable[str]) -> list[Permission]:
    rows = list(
        Permission.objects.filter(codename__in=codenames, content_type__app_label="jobqueue")
    )
    assert {row.codename for row in rows} == set(codenames)
    return rows


@pytest.fixture
def superuser(db: None) -> Api:
    """A token of a user who may do everything."""
    user = get_user_model().objects.create_superuser("root")
    return Api(user, Authorization=f"Token {Token.objects.create(user=user).key}")


def problem(response: Any, status: int, code: str) -> dict[str, Any]:
    """Return the problem of an answer, which must be this one."""
    assert response["Content-Type"] == "application/problem+json", response.content[:200]
    document = response.json()
    assert (response.status_code, document["code"]) == (status, code), document
    assert document["status"] == status
    assert document["type"].endswith(code)
    assert document["title"]
    assert document["detail"]
    return document


@pytest.fixture
def storage(db: None) -> Storage:
    """Storage on the connection, and in the transaction, of the test."""
    return storage_for(connection, options_for("default"))
