"""GET of jobs: what is told, and to whom; pages, filters, ETags, and rows of any age."""

import json
import os
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from jobqueue.api.resources.jobs.documents import JobDetail, JobSummary
from jobqueue.engine.rollups import catch_up
from jobqueue.ids import new_job_id
from jobqueue.models import (
    Action,
    Attempt,
    BulkOperation,
    Job,
    LogLine,
    Progress,
    Schedule,
    Step,
)
from jobqueue.payload import ErrorText
from tests.api.conftest import Api, problem
from tests.engine.tasks import atomic_job, plain_job
from tests.storage.making import FAILURE, claim, claimed, ending, insert, register, run_sql
from tests.storage.test_operators import in_every_state

VIEW, PAYLOAD = "view_job", "view_job_payload"
SECRET = {"args": [], "kwargs": {"password": "hunter2", "order": 42}}


@pytest.fixture
def viewer(make_caller) -> Api:
    """May see all jobs, and no payload."""
    return make_caller("vera", VIEW)


@pytest.fixture
def auditor(make_caller) -> Api:
    """May see all jobs with their payload."""
    return make_caller("ada", VIEW, PAYLOAD)


def owner_of(api: Api) -> str:
    return f"{api.user.username}#{api.user.pk}"


def ids(response: Any) -> list[str]:
    assert response.status_code == 200, response.json()
    return [job["id"] for job in response.json()["results"]]


def change(job_id: UUID, **columns: Any) -> None:
    Job.objects.filter(id=job_id).update(**columns)


# --- whose jobs -----------------------------------------------------------------------------------


def test_callers_see_their_own_jobs_only(make_caller, storage):
    kim, sam = make_caller("kim"), make_caller("sam")
    (mine,) = insert(storage, created_by=owner_of(kim))
    (foreign,) = insert(storage, created_by=owner_of(sam))
    insert(storage, created_by="kim")  # of the operating system's user
    insert(storage)
    assert ids(kim.get("/jobs/")) == [str(mine)]
    assert ids(kim.get("/jobs/", {"created_by": owner_of(sam)})) == []
    assert kim.get(f"/jobs/{mine}/").status_code == 200
    for address in ("", "attempts/", "steps/", "log/", "actions/"):
        problem(kim.get(f"/jobs/{foreign}/{address}"), 404, "job-not-found")


def test_foreign_job_is_answered_as_one_that_is_not(make_caller, storage):
    (foreign,) = insert(storage)
    kim = make_caller("kim")
    answers = [kim.get(f"/jobs/{job_id}/").content for job_id in (foreign, new_job_id())]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", ["attempts", "steps", "log"])
def test_job_that_becomes_the_callers_while_it_is_looked_for_is_not_found(
    make_caller, storage, name
):
    kim = make_caller("kim")
    (job_id,) = insert(storage)
    found: list[str] = []

    def hand_over(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        if "created_by" in sql and "UPDATE" not in sql and not found:
            found.append(sql)
            change(job_id, created_by=owner_of(kim))
        return answer

    with connection.execute_wrapper(hand_over):
        problem(kim.get(f"/jobs/{job_id}/{name}/"), 404, "job-not-found")
    assert found


def test_name_that_was_given_to_somebody_else_shows_them_nothing(make_caller, storage):
    kim = make_caller("kim")
    insert(storage, created_by=owner_of(kim))
    kim.user.delete()
    assert ids(make_caller("kim").get("/jobs/")) == []


# --- what is told ---------------------------------------------------------------------------------


def test_documents_have_the_fields_that_are_described(auditor, storage):
    in_every_state(storage)
    listed = auditor.get("/jobs/").json()["results"]
    assert {job["state"] for job in listed} == {
        "scheduled", "ready", "blocked", "running", "retrying", "succeeded", "dead", "cancelled",
    }  # fmt: skip
    for job in listed:
        assert job.keys() == JobSummary().fields.keys()
        assert auditor.get(f"/jobs/{job['id']}/").json().keys() == JobDetail().fields.keys()


def test_a_job_says_when_its_last_attempt_began(auditor, storage):
    retried = claimed(storage)
    failed = {"outcome": "failed", "charged": True, "error": FAILURE, "delay": 3_600.0}
    storage.end_many([ending(retried, "retrying", **failed)])
    (waits,) = insert(storage, delay=3_600.0)
    held = claimed(storage)
    told = {job["id"]: job["started_at"] for job in auditor.get("/jobs/").json()["results"]}
    assert told == {
        str(retried.id): began(retried.id),
        str(waits): None,
        str(held.id): written(Job.objects.get(pk=held.id).claimed_at),
    }
    storage.finish_one(held, "null", 0.1)
    assert auditor.get(f"/jobs/{held.id}/").json()["started_at"] == began(held.id)


def began(job_id: UUID) -> str:
    return written(Attempt.objects.get(job_id=job_id).started_at)


def written(at: datetime | None) -> str:
    """Return a time as JSON has it."""
    assert at is not None
    return at.isoformat().replace("+00:00", "Z")


def test_payload_needs_a_permission_and_secrets_stay_hidden_all_the_same(viewer, auditor, storage):
    held = claimed(
        storage, arguments=json.dumps(SECRET), unique_key="order:42", unique_until="done"
    )
    storage.finish_one(held, '{"token": "t", "paid": true}', 0.1)
    hidden = viewer.get(f"/jobs/{held.id}/").json()
    assert hidden["payload_hidden"]
    assert (hidden["arguments"], hidden["result"], hidden["unique_key"]) == (None, None, None)
    assert b"hunter2" not in viewer.get("/jobs/").content
    shown = auditor.get(f"/jobs/{held.id}/").json()
    assert not shown["payload_hidden"]
    assert shown["arguments"] == {"args": [], "kwargs": {"password": "[hidden]", "order": 42}}
    assert shown["result"] == {"token": "[hidden]", "paid": True}
    assert shown["unique_key"] == "order:42"


def test_history_tells_what_the_caller_may_know(viewer, auditor, storage):
    held = claimed(storage, register(storage, name="mail-1"))
    Step.objects.create(
        job_id=held.id, name="charge", result={"id": 1}, fence=1, recorded_at=held.claimed_at
    )
    LogLine.objects.create(
        job_id=held.id, fence=1, number=1, logged_at=held.claimed_at, level=30, logger="shop",
        message="slow, password=hunter2",
    )  # fmt: skip
    Action.objects.create(
        job_id=held.id, at=held.claimed_at, actor="kim", surface="admin", verb="requeue",
        detail={"reason": "again"},
    )  # fmt: skip
    storage.end_many([ending(held, "dead", outcome="failed", charged=True, error=FAILURE)])

    def history(api: Api, name: str) -> dict[str, Any]:
        (entry,) = api.get(f"/jobs/{held.id}/{name}/").json()["results"]
        return entry

    attempt = history(auditor, "attempts")
    ran = ("number", "outcome", "worker_name", "worker_pid")
    assert [attempt[name] for name in ran] == [1, "failed", "mail-1", os.getpid()]
    assert attempt["traceback"] == FAILURE.traceback
    assert history(auditor, "steps")["result"] == {"id": 1}
    assert history(auditor, "log")["level"] == "WARNING"
    assert history(auditor, "log")["message"] == "slow, password=[hidden]"
    assert history(viewer, "actions")["reason"] == "again"
    assert history(viewer, "attempts")["traceback"] is None
    assert history(viewer, "attempts")["error_message"] == FAILURE.message
    assert history(viewer, "steps")["result"] is None
    assert history(viewer, "log")["message"] is None


@pytest.mark.parametrize("own", [False, True], ids=["all jobs", "own jobs"])
def test_nothing_tells_a_payload_to_whoever_may_not_see_it(make_caller, storage, own):
    caller = make_caller("vera") if own else make_caller("vera", VIEW)
    held = claimed(storage, arguments='{"args": ["hunter2"], "kwargs": {}}')
    failure = ErrorText("builtins.KeyError", "no 'hunter2'\nhunter2", "hunter2", "0" * 32)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True, error=failure)])
    change(held.id, unique_key="hunter2", unique_until="done", limit_key="hunter2",
           created_by=owner_of(caller))  # fmt: skip
    at, of = held.claimed_at, {"job_id": held.id, "fence": 1}
    Progress.objects.create(**of, done=1, message="at hunter2", reported_at=at)
    Step.objects.create(**of, name="charge", result="hunter2", recorded_at=at)
    LogLine.objects.create(**of, number=1, logged_at=at, level=30, logger="a", message="hunter2")
    BulkOperation.objects.create(
        backend="default", verb="requeue", filter="args.0:hunter2", actor="ada", surface="api",
        action=1, began_at=at, stepped_at=at, total=1, error="DataError: no 'hunter2'\nhunter2",
    )  # fmt: skip
    Schedule.objects.create(
        name="nightly", task="app.gone", cron="0 6 * * *", error="KeyError: 'hunter2'",
        arguments={"args": ["hunter2"], "kwargs": {}},
    )  # fmt: skip
    catch_up(storage)
    job = f"/jobs/{held.id}/"
    pages = ["/jobs/", job, *(f"{job}{name}/" for name in ("attempts", "steps", "log", "actions"))]
    others = ["/page/bulk/", "/page/errors/", "/page/findings/", "/schedules/", "/stats/",
              "/queues/", "/workers/"]  # fmt: skip
    for address in pages if own else pages + others:
        answer = caller.get(address)
        assert answer.status_code == 200, address
        assert b"hunter2" not in answer.content, address
    assert caller.get(job).json()["error_message"] == "no '…'"
    assert make_caller("ada", VIEW, PAYLOAD).get(job).json()["limit_key"] == "hunter2"


def test_allowed_actions_are_what_state_and_permissions_allow(make_caller, storage):
    jobs = in_every_state(storage)
    caller = make_caller("kim", VIEW, "requeue_job", "cancel_job")
    allowed = {job["id"]: job["allowed_actions"] for job in caller.get("/jobs/").json()["results"]}
    assert allowed[str(jobs["dead"])] == ["requeue"]
    assert allowed[str(jobs["cancelled"])] == ["requeue"]
    assert allowed[str(jobs["running"])] == ["cancel"]
    assert allowed[str(jobs["ready"])] == ["cancel"]
    assert allowed[str(jobs["succeeded"])] == []


# --- rows of any kind -----------------------------------------------------------------------------


def test_numbers_that_javascript_cannot_hold_are_text(auditor, storage):
    numbers = {"args": [2**53, 2**53 - 1, -(2**53), 1.5, True], "kwargs": {}}
    (job_id,) = insert(storage, arguments=json.dumps(numbers))
    shown = auditor.get(f"/jobs/{job_id}/").json()["arguments"]["args"]
    assert shown == ["9007199254740992", 9007199254740991, "-9007199254740992", 1.5, True]


ODD = {
    "no JSON": "{broken",
    "another shape": '["a", "b"]',
    "not a number": '{"args": [NaN, Infinity], "kwargs": {}}',
    "half a letter": '{"args": ["\\ud800"], "kwargs": {}}',
    "null": "null",
    "abyss": '{"args": [' + "[" * 5_000 + "]" * 5_000 + '], "kwargs": {}}',
    "deep": '{"args": [' + "[" * 150 + "]" * 150 + '], "kwargs": {}}',
}


@pytest.mark.parametrize("odd", ODD)
def test_row_with_unreadable_documents_is_shown_all_the_same(auditor, storage, odd):
    (job_id,) = insert(storage)
    if connection.vendor == "postgresql" and odd in ("no JSON", "not a number"):
        pytest.skip("PostgreSQL refuses what is no JSON")
    sql = "UPDATE jobqueue_job SET arguments = %(arguments)s WHERE id = %(id)s"
    hexed = job_id if connection.vendor == "postgresql" else job_id.hex
    run_sql(connection, sql, {"arguments": ODD[odd], "id": hexed})
    assert ids(auditor.get("/jobs/")) == [str(job_id)]
    shown = auditor.get(f"/jobs/{job_id}/")
    assert shown.status_code == 200
    unreadable = odd in ("no JSON", "another shape", "null", "abyss")
    assert shown.json()["payload_unreadable"] == unreadable
    assert (shown.json()["arguments"] is None) == unreadable


def test_rows_of_older_versions_and_unknown_tasks_are_shown(auditor, storage):
    held = claimed(storage)
    storage.end_many([ending(held, "dead", outcome="lost")])
    change(held.id, task="gone.tasks.gone", backend="gone", max_attempts=None, trace_context=None)
    Attempt.objects.filter(job_id=held.id).update(due_at=None)
    shown = auditor.get(f"/jobs/{held.id}/").json()
    assert (shown["task"], shown["task_known"], shown["max_attempts"]) == (
        "gone.tasks.gone", False, None,
    )  # fmt: skip
    assert shown["atomic"] is None
    assert auditor.get(f"/jobs/{held.id}/attempts/").json()["results"][0]["due_at"] is None


@pytest.mark.parametrize(("task", "atomic"), [(atomic_job, True), (plain_job, False)])
def test_a_job_says_whether_its_writes_are_one_transaction_with_its_end(auditor, task, atomic):
    job = task.enqueue("body")
    assert auditor.get(f"/jobs/{job.id}/").json()["atomic"] is atomic


# --- lists ----------------------------------------------------------------------------------------


@pytest.fixture
def various(storage) -> dict[str, str]:
    """Jobs that differ in what filters look at, by a name."""
    worker = register(storage, name="web-1", host="shop.example")
    made = {
        "mail": {"queue": "mail", "tags": ("order:42",), "schedule": "nightly"},
        "kims": {"task": "shop.tasks.send", "created_by": "kim#7"},
        "args": {"arguments": '{"args": [], "kwargs": {"order": 42}}'},
        "later": {"delay": 7_200.0},
    }
    held = claimed(storage, worker)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True, error=FAILURE)])
    found = {"dead": held.id, "running": claimed(storage, worker).id}
    found |= {name: insert(storage, **changes)[0] for name, changes in made.items()}
    return {name: str(job_id) for name, job_id in found.items()}


EVERYTHING = {"mail", "kims", "args", "later", "dead", "running"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, EVERYTHING),
        ({"state": "dead,running"}, {"dead", "running"}),
        ({"state": "waiting", "queue": "mail"}, {"mail"}),
        ({"queue": "mail,default"}, EVERYTHING),
        ({"task": "shop.tasks.send"}, {"kims"}),
        ({"tag": "order:42"}, {"mail"}),
        ({"error": "ValueError"}, {"dead"}),
        ({"fingerprint": FAILURE.fingerprint}, {"dead"}),
        ({"worker": "web-1"}, {"running"}),
        ({"schedule": "nightly"}, {"mail"}),
        ({"created_by": "kim#7"}, {"kims"}),
        ({"created_after": "-1h", "created_before": "+1h"}, EVERYTHING),
        ({"created_after": "+1h"}, set()),
        ({"run_at_after": "+1h"}, {"later"}),
        ({"run_at_before": "+1h"}, EVERYTHING - {"later"}),
        ({"finished_after": "-1h"}, {"dead"}),
        ({"finished_before": "2020-01-01T00:00:00Z"}, set()),
        ({"args.order": "42"}, {"args"}),
        ({"q": "state:dead error:ValueError"}, {"dead"}),
        ({"q": "queue:mail", "tag": "order:42"}, {"mail"}),
        ({"queue": "ma*"}, set()),
    ],
    ids=str,
)  # fmt: skip
def test_list_is_narrowed_by(auditor, various, query, expected):
    names = {job_id: name for name, job_id in various.items()}
    assert {names[job_id] for job_id in ids(auditor.get("/jobs/", query))} == expected


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({"page": "2"}, "page"),
        ({"state": "broken"}, "state"),
        ({"state": "dead,,ready"}, "state"),
        ({"created_after": "yesterday"}, "created_after"),
        ({"older_than": "17"}, "older_than"),
        ({"limit": "0"}, "limit"),
        ({"limit": "201"}, "limit"),
        ({"older_than": new_job_id(), "newer_than": new_job_id()}, "newer_than"),
        ({"args.": "1"}, "args."),
        ({"args.a:b": "1"}, "args.a:b"),
        ({"args.password": "hunter"}, "args.password"),
        ({"args.card.pin": "1"}, "args.card.pin"),
        ({"q": "args.api_key:x"}, "args.api_key"),
        ({"ordering": "arguments"}, "ordering"),
    ],
    ids=str,
)
def test_parameters_that_cannot_be_are_named(auditor, db, query, parameter):
    document = problem(auditor.get("/jobs/", query), 400, "invalid-parameters")
    assert [error["parameter"] for error in document["errors"]] == [parameter]


def test_filter_that_cannot_be_read_is_refused_with_its_place(auditor, db):
    document = problem(auditor.get("/jobs/", {"q": "state:dead colour:red"}), 400, "invalid-filter")
    assert document["position"] == 11


@pytest.mark.parametrize(
    "query",
    [{"args.order": "42"}, {"q": "args.order:42"}, {"q": "message:order"}, {"q": "no-such"}],
    ids=str,
)
def test_who_may_not_see_payloads_may_not_guess_them(viewer, make_caller, storage, query):
    insert(storage)
    for caller in (viewer, make_caller("kim")):
        document = problem(caller.get("/jobs/", query), 403, "permission-denied")
        assert document["permission"] == "jobqueue.view_job_payload"


def test_pages_lead_through_all_jobs_and_back(viewer, storage):
    made = [str(job_id) for job_id in insert(storage, 5, queue="mail")][::-1]
    insert(storage)
    first = viewer.get("/jobs/", {"queue": "mail", "limit": "2"})
    seen, page = ids(first), first
    while page.json()["next"]:
        page = viewer.client.get(page.json()["next"], headers=viewer.headers)
        seen += ids(page)
    assert seen == sorted(made, reverse=True)
    back = viewer.client.get(page.json()["previous"], headers=viewer.headers)
    assert ids(back) == seen[2:4]
    assert first.json()["previous"] is None


def test_history_is_paged_by_its_numbers(viewer, storage):
    (job_id,) = insert(storage)
    for number in range(1, 6):
        Action.objects.create(
            job_id=job_id, at=Job.objects.get().run_at, actor="kim", surface="api",
            verb=f"v{number}",
        )  # fmt: skip
    page = viewer.get(f"/jobs/{job_id}/actions/", {"limit": "3"}).json()
    rest = viewer.client.get(page["next"], headers=viewer.headers).json()
    assert [a["verb"] for a in page["results"] + rest["results"]] == ["v5", "v4", "v3", "v2", "v1"]
    assert rest["next"] is None


# --- ETags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["/jobs/", "/jobs/{}/", "/jobs/{}/attempts/"])
def test_what_has_not_changed_is_not_sent_again(viewer, storage, address):
    (job_id,) = insert(storage)
    first = viewer.get(address.format(job_id))
    again = viewer.get(address.format(job_id), **{"If-None-Match": f'"other", {first["ETag"]}'})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    (held,) = claim(storage, register(storage))
    storage.finish_one(held, "null", 0.1)
    changed = viewer.get(address.format(job_id), **{"If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert changed["ETag"] != first["ETag"]


def test_etag_differs_for_whoever_is_told_something_else(viewer, auditor, storage):
    (job_id,) = insert(storage)
    etags = {api.get(f"/jobs/{job_id}/")["ETag"] for api in (viewer, auditor)}
    assert len(etags) == 2


def test_reading_changes_nothing(auditor, storage):
    jobs = in_every_state(storage)
    before = list(Job.objects.order_by("id").values())
    for job_id in jobs.values():
        for name in ("", "attempts/", "steps/", "log/", "actions/"):
            assert auditor.get(f"/jobs/{job_id}/{name}").status_code == 200
        for name in ("cancel", "requeue", "discard", "run-now"):
            problem(auditor.get(f"/jobs/{job_id}/{name}/"), 405, "method-not-allowed")
    assert list(Job.objects.order_by("id").values()) == before
    assert not Action.objects.exists()
