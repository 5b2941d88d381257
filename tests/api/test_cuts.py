"""A session lost, or a server that dies, at every step of a POST: no job and no key, or both.

What the client gets then is no yes, and what it gets by repeating the request is one job and one
answer.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection, connections, transaction

from jobqueue.compat import task_enqueued
from jobqueue.models import IdempotencyKey, Job, JobTag
from tests.api.conftest import Api, problem
from tests.api.tasks import CHARGE
from tests.conftest import url_in_use
from tests.engine.cutting import session_pid, terminate
from tests.process.proxy import How, Proxy

pytestmark = pytest.mark.django_db(transaction=True)

BODY = {"task": CHARGE, "args": [7]}
KEY = {"Idempotency-Key": "k"}
LAST = b"UPDATE jobqueue_idempotencykey"
"""What a session has sent whose next message is the COMMIT."""
on_postgres = pytest.mark.postgres_only("SQLite has no sessions to lose")


@pytest.fixture
def kim(make_caller) -> Api:
    return make_caller("kim", "enqueue_job")


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url_in_use("default"), autocommit=True) as session:
        yield session


class Step:
    """An execute wrapper that does something before or after the n-th statement."""

    def __init__(self, number: int, when: str, do: Any):
        self.number, self.when, self.do = number, when, do
        self.seen = 0

    def __call__(self, execute, sql, params, many, context):
        self.seen += 1
        is_here = self.seen == self.number
        if is_here and self.when == "before":
            self.do()
        result = execute(sql, params, many, context)
        if is_here and self.when == "after":
            self.do()
        return result


def kept() -> tuple[int, ...]:
    """Return how many jobs, tags and keys there are; a lost session is replaced."""
    connection.close()
    return tuple(model.objects.count() for model in (Job, JobTag, IdempotencyKey))


ENOUGH = 7
"""Statements before the COMMIT: fewer, and the tests would not see what a request does."""
NOTHING, ALL = (0, 0, 0), (1, 1, 1)


def repeated(kim: Api) -> Any:
    """Send the request again, and check that with it there is one job and its answer."""
    response = kim.post("/jobs/", BODY, **KEY)
    assert response.status_code == 201, response.content
    assert kept() == ALL
    assert response.json()["id"] == str(Job.objects.get().pk)
    return response


# --- the session is lost ----------------------------------------------------------------------


@on_postgres
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_session_ended_at_any_statement_leaves_nothing(kim: Api, admin, when):
    number = 1
    while (response := cut_off(kim, admin, number, when)).status_code != 201:
        problem(response, 503, "unavailable")
        assert response["Retry-After"]
        assert kept() == NOTHING, number
        number += 1
    # The first yes: by now the statement comes after the COMMIT (a hint), or not at all.
    assert kept() == ALL
    assert number > ENOUGH
    repeated(kim)


def cut_off(kim: Api, admin, number: int, when: str) -> Any:
    """Send the request, and end the server's session at its n-th statement."""
    with connection.execute_wrapper(Step(number, when, lambda: terminate(admin, session_pid()))):
        return kim.post("/jobs/", BODY, **KEY)


@contextmanager
def through(proxy: Proxy) -> Iterator[None]:
    """Connect to the database through `proxy`."""
    settings = connections.settings["default"]
    before = settings["HOST"], settings["PORT"]
    parts = urlsplit(proxy.url(url_in_use("default")))
    connection.close()
    settings["HOST"], settings["PORT"] = parts.hostname, str(parts.port)
    try:
        yield
    finally:
        connection.close()
        settings["HOST"], settings["PORT"] = before


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy(url_in_use("default")) as one, through(one):
        yield one


@on_postgres
def test_a_commit_that_never_arrives_leaves_nothing(kim: Api, proxy: Proxy):
    cut = proxy.cut(b"COMMIT", How.BEFORE, after=LAST)
    problem(kim.post("/jobs/", BODY, **KEY), 503, "unavailable")
    assert cut.happens()
    assert kept() == NOTHING
    assert "Idempotent-Replayed" not in repeated(kim)


@on_postgres
def test_a_commit_whose_answer_is_lost_is_no_yes_and_the_repeat_gets_the_answer(
    kim: Api, proxy: Proxy
):
    cut = proxy.cut(b"COMMIT", How.AFTER, after=LAST)
    document = problem(kim.post("/jobs/", BODY, **KEY), 503, "unavailable")
    assert cut.happens()
    assert "same idempotency key" in document["detail"]
    assert kept() == ALL
    assert repeated(kim)["Idempotent-Replayed"] == "true"


@on_postgres
def test_a_commit_on_its_way_is_waited_for_and_then_answered(kim: Api, proxy: Proxy):
    cut = proxy.cut(b"COMMIT", How.HELD, after=LAST)
    problem(kim.post("/jobs/", BODY, **KEY), 503, "unavailable")
    connection.close()
    response = kim.post("/jobs/", BODY, **KEY)
    problem(response, 409, "idempotency-key-in-progress")
    assert response["Retry-After"]
    assert kept() == NOTHING
    proxy.release(cut)
    repeated(kim)


# --- the server dies --------------------------------------------------------------------------


def died(kim: Api, number: int, when: str) -> bool:
    """Answer the request in a child that dies at a statement; return whether it came so far."""
    connections.close_all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of servers, asleep
        child = os.fork()
    if child == 0:
        try:
            if when == "commit":
                task_enqueued.connect(_die_after_commit)
                kim.post("/jobs/", BODY, **KEY)
            else:
                with connection.execute_wrapper(Step(number, when, lambda: os._exit(9))):
                    kim.post("/jobs/", BODY, **KEY)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 9


def _die_after_commit(**_: Any) -> None:
    transaction.on_commit(lambda: os._exit(9))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_that_dies_at_any_statement_leaves_nothing(kim: Api, when):
    number = 1
    while died(kim, number, when) and (found := kept()) != ALL:
        assert found == NOTHING, number
        number += 1
    assert kept() == ALL
    assert number > ENOUGH
    repeated(kim)


def test_a_server_that_dies_after_the_commit_leaves_job_and_answer(kim: Api):
    assert died(kim, 0, "commit")
    assert kept() == ALL
    assert repeated(kim)["Idempotent-Replayed"] == "true"
