"""Queues, limits, workers, schedules: shown, changed by those who may, repeated without harm."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from jobqueue import control, task
from jobqueue.ids import new_identity
from jobqueue.models import Action, Job, Limit, Queue, Schedule, Worker
from tests.api.conftest import Api, problem
from tests.storage.making import claimed, insert, register


@task(expose={"api"})
def report(days=1, password=""):
    """Sum the days up."""


@task
def internal():
    pass


REPORT = f"{report.func.__module__}.report"
OPERATOR = (
    "view_job", "view_job_payload", "pause_queue", "change_limit", "drain_worker", "add_schedule",
    "change_schedule", "delete_schedule", "run_schedule",
)  # fmt: skip


@pytest.fixture
def operator(make_caller) -> Api:
    return make_caller("olga", *OPERATOR)


KEY, REPLAYED = {"Idempotency-Key": "k1"}, "Idempotent-Replayed"


@pytest.fixture
def viewer(make_caller) -> Api:
    return make_caller("vera", "view_job")


def ok(response: Any, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.content
    return response.json()


def verbs() -> list[str]:
    return list(Action.objects.order_by("id").values_list("verb", flat=True))


# --- queues and limits ----------------------------------------------------------------------------


def test_queue_is_paused_and_resumed_with_a_reason(operator, storage):
    insert(storage, 3, queue="mail")
    paused = ok(operator.patch("/queues/mail/", {"paused": True, "reason": "new server"}))
    assert (paused["paused"], paused["paused_by"], paused["paused_reason"]) == (
        True, "olga", "new server",
    )  # fmt: skip
    assert paused["ready"] == {"value": 3, "relation": "eq"}
    assert paused["allowed_actions"] == ["resume", "set_limit"]
    assert ok(operator.patch("/queues/mail/", {"paused": True}))["paused_reason"] == "new server"
    listed = ok(operator.get("/queues/"))["results"]
    assert {queue["name"]: queue["paused"] for queue in listed} == {"default": False, "mail": True}
    assert not ok(operator.patch("/queues/mail/", {"paused": False}))["paused"]
    assert verbs() == ["pause", "resume"]


def test_queue_is_limited(operator, storage):
    limited = ok(operator.patch("/queues/mail/", {"limit": {"running": 2}, "reason": "slow"}))
    assert (limited["limit"]["running"], limited["limit"]["set_by"]) == (2, "olga")
    assert ok(operator.get("/limits/"))["results"][0]["key"] == "queue:mail"
    both = {"paused": True, "limit": {"rate": 5, "per": 60.0}}
    assert ok(operator.patch("/queues/mail/", both))["limit"]["rate"] == 5
    assert ok(operator.patch("/queues/mail/", {"limit": None}))["limit"]["running"] is None
    assert operator.delete("/limits/queue:mail/").status_code == 204
    assert (Limit.objects.get().set_by, Queue.objects.get().paused) == ("", True)


def test_change_of_a_queue_that_fails_in_part_changes_nothing(operator, storage):
    wrong = {"paused": True, "limit": {"rate": 5}}  # without its period
    problem(operator.patch("/queues/mail/", wrong), 400, "invalid-argument")
    assert not Queue.objects.filter(paused=True).exists()
    assert verbs() == []


def test_each_change_of_a_queue_needs_its_permission(make_caller, storage):
    pauses = make_caller("paul", "view_job", "pause_queue")
    limits = make_caller("lea", "view_job", "change_limit")
    blind = make_caller("bob", "pause_queue", "change_limit")
    for caller, body, lacks in (
        (pauses, {"paused": True, "limit": None}, "change_limit"),
        (limits, {"paused": True}, "pause_queue"),
        (blind, {"paused": True}, "view_job"),
    ):
        document = problem(caller.patch("/queues/mail/", body), 403, "permission-denied")
        assert document["permission"] == f"jobqueue.{lacks}"
    assert verbs() == []


@pytest.mark.parametrize("name", ["mial", "a/b", "%00", "x" * 200, "%ED%A0%80"])
def test_queue_that_nobody_knows_is_not_made_by_a_slip(operator, storage, name):
    problem(operator.patch(f"/queues/{name}/", {"paused": True}), 404, "not-found")
    problem(operator.get(f"/queues/{name}/"), 404, "not-found")
    assert not Queue.objects.exists()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ({"reason": "x"}, ""),
        ({"paused": "yes"}, "/paused"),
        ({"limit": {}}, "/limit"),
        ({"limit": {"running": -1}}, "/limit/running"),
        ({"limit": {"running": 1, "burst": 2}}, "/limit/burst"),
        ({"paused": True, "name": "x"}, "/name"),
    ],
    ids=str,
)
def test_bodies_of_queues_are_strict(operator, storage, body, pointer):
    document = problem(operator.patch("/queues/mail/", body), 400, "invalid-fields")
    assert [error["pointer"] for error in document["errors"]] == [pointer]


def test_limit_of_a_key_is_set_lifted_and_reset(operator, storage):
    Limit.objects.create(key="customer", source="shop.tasks.send", code_running=3, running=3)
    key = "/limits/customer:42/"
    assert ok(operator.put(key, {"running": 1, "reason": "abuse"}))["running"] == 1
    assert ok(operator.put(key, {"reason": "sorry"}))["running"] is None
    assert operator.delete(key).status_code == 204
    assert operator.delete(key).status_code == 204
    problem(operator.put("/limits/custmer:42/", {"running": 1}), 400, "invalid-argument")
    problem(operator.put("/limits/queue:mial/", {"running": 1}), 404, "not-found")
    assert verbs() == ["set_limit", "lift_limit", "reset_limit"]


# --- workers --------------------------------------------------------------------------------------


def test_workers_are_listed_with_what_they_do(viewer, storage):
    worker = register(storage, name="mail-1", queues=("default",))
    claimed(storage, worker)
    dead = register(storage, name="mail-0")
    storage.mark_dead(dead, "lease ran out", "jobs")
    found = ok(viewer.get("/workers/"))
    (alive,) = found["results"]
    assert (alive["id"], alive["name"], alive["running"]) == (str(worker), "mail-1", 1)
    (gone,) = found["dead"]
    assert (gone["name"], gone["reason"]) == ("mail-0", "lease ran out")
    assert gone["started_at"] <= gone["seen_at"] <= gone["died_at"]


def test_worker_is_drained_once(operator, storage):
    worker, dead = register(storage), register(storage)
    storage.mark_dead(dead, "lease ran out", "jobs")
    for _ in range(2):
        told = ok(operator.post(f"/workers/{worker}/drain/"), 202)
        assert told == {"id": str(worker), "draining": True}
    assert Worker.objects.get(id=worker).draining
    document = problem(operator.post(f"/workers/{dead}/drain/"), 409, "wrong-state")
    assert document["current_state"] == "dead"
    problem(operator.post(f"/workers/{new_identity()}/drain/"), 404, "not-found")
    assert verbs() == ["drain"]


# --- schedules ------------------------------------------------------------------------------------

NEW = {"name": "nightly", "task": REPORT, "kwargs": {"days": 2}, "cron": "30 2 * * *",
       "time_zone": "Europe/Berlin"}  # fmt: skip


@pytest.fixture
def schedule(operator) -> str:
    response = operator.post("/schedules/", NEW)
    made = ok(response, 201)
    assert response["Location"].endswith(f"/schedules/{made['id']}/")
    return f"/schedules/{made['id']}/"


def test_schedule_is_made_shown_and_listed(operator, viewer, schedule):
    shown = ok(operator.get(schedule))
    assert (shown["name"], shown["state"], shown["version"]) == ("nightly", "ticking", 1)
    assert shown["arguments"] == {"args": [], "kwargs": {"days": 2}}
    assert len(shown["next_ticks"]) == 5
    assert shown["next_ticks"][0]["local"].endswith(("+01:00", "+02:00"))
    (listed,) = ok(viewer.get("/schedules/"))["results"]
    assert (listed["name"], listed["arguments"], listed["payload_hidden"]) == (
        "nightly", None, True,
    )  # fmt: skip
    assert ok(viewer.get(f"{schedule}ticks/"))["results"] == []
    problem(operator.post("/schedules/", NEW), 400, "invalid-schedule")
    assert Schedule.objects.count() == 1


def test_schedule_that_nobody_ticks_is_late(operator, schedule):
    assert ok(operator.get(schedule))["late"] is False
    Schedule.objects.update(look_at=timezone.now() - timedelta(hours=1))
    shown = ok(operator.get(schedule))
    assert (shown["state"], shown["late"]) == ("ticking", True)


@pytest.mark.parametrize(
    ("changes", "code", "pointer"),
    [
        ({"cron": "99 * * * *"}, "invalid-schedule", "/cron"),
        ({"cron": "@hourly", "every": 60}, "invalid-schedule", None),
        ({"time_zone": "Mars/Base"}, "invalid-schedule", "/time_zone"),
        ({"kwargs": {"weeks": 1}}, "invalid-schedule", "/args"),
        ({"every": "60"}, "invalid-fields", "/every"),
        ({"task": f"{__name__}.internal"}, "task-not-exposed", None),
        ({"task": "os.system"}, "task-not-exposed", None),
        ({"task": "nowhere"}, "invalid-schedule", "/task"),
        ({"queue_name": "nowhere"}, "invalid-schedule", "/queue_name"),
        ({"created_by": "me"}, "invalid-fields", "/created_by"),
        ({"source": "code"}, "invalid-fields", "/source"),
        ({"name": " x "}, "invalid-schedule", "/name"),
    ],
    ids=str,
)
def test_schedule_that_cannot_be_is_refused(operator, changes, code, pointer):
    document = problem(operator.post("/schedules/", NEW | changes), 400, code)
    if pointer is not None:
        assert pointer in [error["pointer"] for error in document["errors"]]
    assert not Schedule.objects.exists()


def test_schedule_is_changed_by_whoever_has_seen_it(operator, schedule):
    seen = operator.get(schedule)["ETag"]
    changed = operator.patch(schedule, {"cron": "@daily"}, **{"If-Match": seen})
    assert ok(changed)["cron"] == "@daily"
    late = operator.patch(schedule, {"cron": "@hourly"}, **{"If-Match": seen})
    problem(late, 412, "precondition-failed")
    other = ok(operator.patch(schedule, {"every": 3_600}))
    assert (other["cron"], other["every"]) == ("", 3_600)
    problem(operator.patch(schedule, {}), 400, "invalid-fields")
    problem(operator.patch(schedule, {"name": "other"}), 400, "invalid-fields")


def test_schedule_is_switched_run_and_deleted(operator, schedule):
    assert (
        ok(operator.post(f"{schedule}disable/", {"reason": "stocktaking"}))["state"] == "disabled"
    )
    assert ok(operator.post(f"{schedule}disable/"))["state"] == "disabled"
    made = ok(operator.post(f"{schedule}run/", **KEY), 201)
    assert Job.objects.get().id == UUID(made["job_id"])
    assert ok(operator.post(f"{schedule}enable/", {}))["enabled"]
    operator.patch(schedule, {"overlap": "skip"})
    skipped = ok(operator.post(f"{schedule}run/", **{"Idempotency-Key": "k2"}))
    assert skipped == {"job_id": None, "outcome": "skipped: an earlier run has not ended"}
    assert operator.delete(schedule).status_code == 204
    problem(operator.delete(schedule), 404, "schedule-not-found")
    for address in ("", "ticks/"):
        problem(operator.get(f"{schedule}{address}"), 404, "schedule-not-found")
    assert Job.objects.count() == 1


def test_a_schedule_is_run_once_however_often_the_request_is_repeated(operator, schedule):
    problem(operator.post(f"{schedule}run/"), 400, "idempotency-key-required")
    first = operator.post(f"{schedule}run/", **KEY)
    second = operator.post(f"{schedule}run/", **KEY)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.content == first.content
    assert (first.headers.get(REPLAYED), second.headers.get(REPLAYED)) == (None, "true")
    assert Job.objects.get().id == UUID(first.json()["job_id"])
    assert verbs().count("run_schedule") == 1
    other = ok(operator.post("/schedules/", NEW | {"name": "weekly"}), 201)
    refused = operator.post(f"/schedules/{other['id']}/run/", **KEY)
    problem(refused, 409, "idempotency-key-reused")
    operator.delete(schedule)
    assert operator.post(f"{schedule}run/", **KEY).content == first.content
    missing = operator.post(f"{schedule}run/", **{"Idempotency-Key": "k2"})
    problem(missing, 404, "schedule-not-found")


def test_what_code_declares_is_changed_there(operator, schedule):
    Schedule.objects.update(source="code")
    problem(operator.patch(schedule, {"cron": "@daily"}), 409, "declared-in-code")
    problem(operator.delete(schedule), 409, "declared-in-code")
    assert ok(operator.get(schedule))["allowed_actions"] == ["disable_schedule", "run_schedule"]
    assert not ok(operator.post(f"{schedule}disable/"))["enabled"]


def test_row_that_cannot_tick_is_shown_with_its_error(operator, schedule):
    Schedule.objects.update(cron="99 99 * * *", task="gone.task", priority=None, arguments=[1])
    shown = ok(operator.get(schedule))
    assert (shown["next_ticks"], shown["arguments"]) == ([], None)
    problem(operator.post(f"{schedule}run/", **KEY), 400, "invalid-schedule")


def test_plan_is_previewed(viewer, db):
    plan = {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "count": 3}
    shown = ok(viewer.post("/schedules/preview/", plan))
    assert len(shown["next_ticks"]) == 3
    problem(viewer.post("/schedules/preview/", {"cron": "x"}), 400, "invalid-schedule")
    problem(viewer.post("/schedules/preview/", {}), 400, "invalid-schedule")
    problem(viewer.post("/schedules/preview/", {**plan, "count": 101}), 400, "invalid-fields")


@pytest.mark.parametrize("number", ["0", "9" * 30])
def test_number_that_no_row_has_is_not_found(operator, db, number):
    problem(operator.get(f"/schedules/{number}/"), 404, "schedule-not-found")
    problem(operator.get(f"/page/bulk/{number}/"), 404, "bulk-operation-not-found")


def test_control_is_what_acts(operator, storage):
    """What the API did is what an operator would see that did it."""
    operator.patch("/queues/mail/", {"paused": True})
    action = Action.objects.get()
    assert (action.actor, action.surface, action.verb) == ("olga", "api", "pause")
    assert control.queues()[-1].paused
