"""What callers do to one job: who may, in which state, all or nothing, and harmless if repeated."""

import threading
from contextlib import closing
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections
from django.utils import timezone

from jobqueue.api.resources.jobs import waiting
from jobqueue.ids import new_job_id
from jobqueue.models import Action, CancelRequest, Job
from jobqueue.states import State
from jobqueue.storage.connections import open_connection, transaction_on
from tests.api.conftest import Api, problem
from tests.storage.making import claimed, ending, insert, register
from tests.storage.test_operators import in_every_state

PERMISSIONS = {
    "cancel": "cancel_job",
    "requeue": "requeue_job",
    "discard": "discard_job",
    "run-now": "reprioritize_job",
    "patch": "reprioritize_job",
}
WAITING = {"scheduled", "ready", "blocked", "retrying"}
DONE: dict[str, dict[str, tuple[int, str]]] = {
    "cancel": {**dict.fromkeys(WAITING, (200, "cancelled")), "running": (202, "running"),
               "cancelled": (200, "cancelled")},
    "requeue": {**dict.fromkeys(("dead", "cancelled", "ready"), (200, "ready")),
                "blocked": (200, "blocked")},
    "discard": dict.fromkeys(("dead", "cancelled"), (200, "cancelled")),
    "run-now": {**dict.fromkeys(WAITING - {"blocked"}, (200, "ready")),
                "blocked": (200, "blocked")},
    "patch": {state: (200, state) for state in WAITING},
}  # fmt: skip
"""By action and state: the status, and the state after it. All else is 409."""


@pytest.fixture
def operator(make_caller) -> Api:
    return make_caller("olga", "view_job", *PERMISSIONS.values())


def send(api: Api, job_id: UUID, action: str, **headers: str) -> Any:
    if action == "patch":
        return api.patch(f"/jobs/{job_id}/", {"priority": 7}, **headers)
    return api.post(f"/jobs/{job_id}/{action}/", **headers)


def owner_of(api: Api) -> str:
    return f"{api.user.username}#{api.user.pk}"


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("action", DONE)
def test_state_decides_what_is_done(operator, storage, action, state):
    job_id = in_every_state(storage)[state]
    response = send(operator, job_id, action)
    if state not in DONE[action]:
        document = problem(response, 409, "wrong-state")
        assert document["current_state"] == state
        shown = operator.get(f"/jobs/{job_id}/").json()
        assert document["allowed_actions"] == shown["allowed_actions"]
        assert not Action.objects.exists()
        return
    status, after = DONE[action][state]
    assert (response.status_code, response.json()["state"]) == (status, after)
    again = send(operator, job_id, action)
    assert (again.status_code, again.json()["state"]) == (status, after)
    assert {(a.actor, a.surface) for a in Action.objects.all()} <= {("olga", "api")}


@pytest.mark.parametrize("action", DONE)
def test_who_may_do_it(make_caller, storage, action):
    everything = set(PERMISSIONS.values())
    lacks = make_caller("lea", "view_job", *(everything - {PERMISSIONS[action]}))
    own_only = make_caller("otto", *everything)
    (foreign,) = insert(storage)
    (mine,) = insert(storage, created_by=owner_of(own_only))
    unknown = new_job_id()
    for job_id in (foreign, mine, unknown):
        problem(send(lacks, job_id, action), 403, "permission-denied")
    hidden = [send(own_only, job_id, action) for job_id in (foreign, unknown)]
    assert hidden[0].content == hidden[1].content
    problem(hidden[0], 404, "job-not-found")
    assert not Action.objects.exists()
    assert send(own_only, mine, action).status_code in (200, 409)


def test_running_job_is_asked_or_ended_by_force(operator, storage):
    asked, forced = claimed(storage), claimed(storage)
    response = operator.post(f"/jobs/{asked.id}/cancel/", {"reason": "withdrawn"})
    assert response.status_code == 202
    assert response.json()["cancel_requested"]["reason"] == "withdrawn"
    assert CancelRequest.objects.get().reason == "withdrawn"
    response = operator.post(f"/jobs/{forced.id}/cancel/", {"force": True, "reason": "now"})
    assert (response.status_code, response.json()["state"]) == (200, "cancelled")
    assert response.json()["reason"] == "now"


@pytest.mark.parametrize(
    ("action", "body", "pointer"),
    [
        ("cancel", {"force": "yes"}, "/force"),
        ("cancel", {"reason": "x" * 65}, "/reason"),
        ("cancel", {"state": "dead"}, "/state"),
        ("requeue", {"priority": 100}, "/priority"),
        ("discard", {"reason": 7}, "/reason"),
        ("run-now", {"now": True}, "/now"),
    ],
)
def test_bodies_of_actions_are_strict(operator, storage, action, body, pointer):
    (job_id,) = insert(storage)
    document = problem(operator.post(f"/jobs/{job_id}/{action}/", body), 400, "invalid-fields")
    assert [error["pointer"] for error in document["errors"]] == [pointer]
    assert not Action.objects.exists()


# --- PATCH ----------------------------------------------------------------------------------------


def test_several_changes_are_made_together(operator, storage):
    (job_id,) = insert(storage)
    at = (timezone.now() + timedelta(hours=1)).replace(microsecond=0)
    body = {"priority": 9, "queue_name": "mail", "run_after": at.isoformat()}
    shown = operator.patch(f"/jobs/{job_id}/", body).json()
    assert (shown["priority"], shown["queue_name"], shown["state"]) == (9, "mail", "scheduled")
    job = Job.objects.get()
    assert (job.priority, job.queue, job.run_at) == (9, "mail", at)
    verbs = Action.objects.order_by("id").values_list("verb", flat=True)
    assert list(verbs) == ["move", "reprioritize", "reschedule"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"priority": 5, "queue_name": "nowhere"}, "invalid-argument"),
        ({"priority": 101}, "invalid-fields"),
        ({"priority": True}, "invalid-fields"),
        ({"priority": 5, "state": "ready"}, "invalid-fields"),
        ({"priority": 5, "created_by": "me"}, "invalid-fields"),
        ({"priority": 5, "run_after": "soon"}, "invalid-fields"),
        ({"priority": 5, "run_after": "2030-01-01T00:00:00"}, "invalid-fields"),
        ({"run_after": "9999-12-31T23:59:59Z"}, "invalid-fields"),
        ({"priority": None}, "invalid-fields"),
        ({}, "invalid-fields"),
    ],
    ids=str,
)
def test_change_with_anything_wrong_changes_nothing(operator, storage, body, code):
    (job_id,) = insert(storage)
    before = Job.objects.values().get()
    problem(operator.patch(f"/jobs/{job_id}/", body), 400, code)
    assert Job.objects.values().get() == before
    assert not Action.objects.exists()


def test_change_is_refused_to_whoever_has_seen_another_state(operator, storage):
    (job_id,) = insert(storage)
    seen = operator.get(f"/jobs/{job_id}/")["ETag"]
    changed = operator.patch(f"/jobs/{job_id}/", {"priority": 5}, **{"If-Match": seen})
    assert changed.status_code == 200
    late = operator.patch(f"/jobs/{job_id}/", {"priority": 6}, **{"If-Match": seen})
    problem(late, 412, "precondition-failed")
    problem(
        operator.patch(f"/jobs/{job_id}/", {"priority": 6}, **{"If-Match": "W/x"}),
        400,
        "invalid-header",
    )
    assert Job.objects.get().priority == 5
    again = {"If-Match": f'"other", {changed["ETag"]}'}
    assert operator.patch(f"/jobs/{job_id}/", {"priority": 6}, **again).status_code == 200
    assert (
        operator.patch(f"/jobs/{job_id}/", {"priority": 7}, **{"If-Match": "*"}).status_code == 200
    )


@pytest.mark.postgres_only("SQLite locks the whole database")
@pytest.mark.django_db(transaction=True)
def test_of_those_who_have_seen_the_same_one_changes_it(make_caller, storage):
    caller = make_caller("olga", "view_job", "reprioritize_job")
    (job_id,) = insert(storage)
    seen = {"If-Match": caller.get(f"/jobs/{job_id}/")["ETag"]}
    answers: list[tuple[int, int]] = []

    def change(priority: int) -> None:
        api = Api(caller.user, **caller.headers)
        body = {"priority": priority, "queue_name": "mail"}
        response = api.patch(f"/jobs/{job_id}/", body, **seen)
        answers.append((response.status_code, priority))
        connections.close_all()

    threads = [threading.Thread(target=change, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [priority for status, priority in answers if status == 200]
    assert {status for status, _ in answers} <= {200, 409, 412}
    assert Job.objects.get().priority == winner
    assert Action.objects.count() == 2


@pytest.mark.postgres_only("SQLite locks the whole database")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", ["patch", "cancel", "run-now"])
def test_row_that_somebody_holds_is_told_and_not_waited_for(make_caller, storage, action):
    caller = make_caller("olga", "view_job", *PERMISSIONS.values())
    (job_id,) = insert(storage)
    other = open_connection("default")
    with closing(other), transaction_on(other), other.cursor() as cursor:
        cursor.execute("SELECT 1 FROM jobqueue_job FOR UPDATE")
        response = send(caller, job_id, action)
    problem(response, 409, "row-locked")
    assert response["Retry-After"] == "1"
    assert not Action.objects.exists()


# --- waiting for the end --------------------------------------------------------------------------


def test_job_that_has_ended_is_answered_at_once(operator, storage, monkeypatch):
    jobs = in_every_state(storage)
    monkeypatch.setattr(waiting, "_places", threading.BoundedSemaphore(1))
    with waiting._places:  # nobody may wait
        for state in ("succeeded", "dead", "cancelled"):
            response = operator.get(f"/jobs/{jobs[state]}/", {"wait": "20"})
            assert (response.json()["state"], "Retry-After" in response) == (state, False)
        response = operator.get(f"/jobs/{jobs['running']}/", {"wait": "20"})
        assert (response.json()["state"], response["Retry-After"]) == ("running", "1")
    assert operator.get(f"/jobs/{jobs['ready']}/", {"wait": "0.01"}).json()["state"] == "ready"


@pytest.mark.parametrize("wait", ["-1", "21", "nan", "inf", "long"])
def test_wait_has_bounds(operator, storage, wait):
    (job_id,) = insert(storage)
    problem(operator.get(f"/jobs/{job_id}/", {"wait": wait}), 400, "invalid-parameters")


@pytest.mark.django_db(transaction=True)
def test_waiting_holds_no_connection_and_ends_with_the_job(make_caller, storage, settings):
    settings.JOBQUEUE = {"API": {"MAX_WAIT": 60}}
    caller = make_caller("vera", "view_job")
    held = claimed(storage, register(storage))
    looks: list[bool] = []
    asked = threading.Event()

    def has_ended() -> bool:
        looks.append(connections["default"].connection is None)
        if len(looks) > 1:
            asked.set()
        return not Job.objects.filter(id=held.id, state="running").exists()

    def wait_elsewhere() -> None:
        Job.objects.exists()  # with a connection
        waiting.wait_until(has_ended, 60, "default")
        connections.close_all()

    answers: list[Any] = []

    def ask() -> None:
        answers.append(caller.get(f"/jobs/{held.id}/", {"wait": "60"}).json())
        connections.close_all()

    threads = [threading.Thread(target=each) for each in (wait_elsewhere, ask)]
    for thread in threads:
        thread.start()
    assert asked.wait(20)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True)])
    for thread in threads:
        thread.join(30)  # much less than they would wait
        assert not thread.is_alive()
    assert answers[0]["state"] == "dead"
    assert looks[:1] == [False]
    assert all(looks[1:])
