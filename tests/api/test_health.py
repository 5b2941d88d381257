"""Probes: what they answer to whom."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from jobqueue.models import Job, Queue, Worker
from tests.api.conftest import Api, problem
from tests.storage.making import claimed, insert, register

LIVE, READY = "/health/live/", "/health/ready/"


def due_ago(seconds: float, **changes) -> None:
    Job.objects.update(run_at=Now() - timedelta(seconds=seconds), **changes)


def test_live_asks_nobody(anybody: Api, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        response = anybody.get(LIVE)
    assert (response.status_code, response.json()) == (200, {"status": "pass"})


def test_ready_needs_a_worker_that_lives(anybody: Api, storage):
    assert (anybody.get(READY).status_code, anybody.get(READY).json()) == (503, {"status": "fail"})


def test_ready_passes_with_a_worker(anybody: Api, storage):
    register(storage)
    assert (anybody.get(READY).status_code, anybody.get(READY).json()) == (200, {"status": "pass"})


def test_ready_does_not_count_a_worker_whose_lease_is_over(make_caller, storage):
    register(storage)
    Worker.objects.update(lease_until=Now() - timedelta(seconds=1))
    response = make_caller("kim", "view_job").get(READY)
    assert response.status_code == (503 if not storage.one_host else 200)


def unpromoted(storage) -> None:
    insert(storage, delay=60.0)
    due_ago(120)


def unreaped(storage) -> None:
    claimed(storage)
    gone = "00000000-0000-4000-8000-000000000009"
    Job.objects.update(worker=gone, claimed_at=Now() - timedelta(seconds=120))


@pytest.mark.parametrize("make", [unpromoted, unreaped])
def test_ready_fails_for_jobs_that_nobody_moves_on(make_caller, storage, make):
    register(storage)
    make(storage)
    response = make_caller("kim", "view_job").get(READY)
    assert response.status_code == 503
    failed = [
        name for name, check in response.json()["checks"].items() if check["status"] == "fail"
    ]
    assert failed == [make.__name__]
    assert response.json()["checks"][make.__name__]["value"] > 100


def test_age_of_ready_jobs_fails_only_who_asks_for_a_bound(anybody: Api, storage):
    register(storage)
    insert(storage)
    due_ago(600)
    assert anybody.get(READY).status_code == 200
    assert anybody.get(READY, {"max_age": "3600"}).status_code == 200
    assert anybody.get(READY, {"max_age": "60"}).status_code == 503
    problem(anybody.get(READY, {"max_age": "-1"}), 400, "invalid-parameters")
    problem(anybody.get(READY, {"max_age": "nan"}), 400, "invalid-parameters")
    problem(anybody.get(READY, {"max_age": ""}), 400, "invalid-parameters")


def test_jobs_in_a_paused_queue_wait_because_somebody_said_so(anybody: Api, storage):
    register(storage)
    insert(storage)
    due_ago(600)
    Queue.objects.update_or_create(name="default", defaults={"paused": True})
    assert anybody.get(READY, {"max_age": "60"}).status_code == 200


@pytest.mark.parametrize("permissions", [(), ("enqueue_job",)])
def test_checks_are_shown_to_nobody_who_may_not_see_jobs(make_caller, storage, permissions):
    assert set(make_caller("kim", *permissions).get(READY).json()) == {"status"}


def test_many_probes_cost_one_look_a_second(anybody: Api, storage, django_assert_num_queries):
    first = anybody.get(READY).json()
    with django_assert_num_queries(0):
        assert [anybody.get(READY).json() for _ in range(5)] == [first] * 5
