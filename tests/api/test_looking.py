"""Statistics, findings, charts and bulk operations: honest counts, and only for who may see all."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobqueue import control
from jobqueue.api.documents import Document
from jobqueue.api.fresh import Fresh
from jobqueue.api.resources.page import bulk, charts
from jobqueue.api.resources.statistics import StatsDocument
from jobqueue.engine.rollups import catch_up
from jobqueue.models import Action, BulkOperation, Job
from tests.api.conftest import Api, problem
from tests.storage.making import FAILURE, claimed, ending, insert
from tests.storage.test_operators import in_every_state


@pytest.fixture
def viewer(make_caller) -> Api:
    return make_caller("vera", "view_job")


@pytest.fixture
def operator(make_caller) -> Api:
    return make_caller("olga", "view_job", "requeue_job", "cancel_job", "reprioritize_job")


def ok(response: Any, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.content
    return response.json()


def failed(storage, **changes):
    held = claimed(storage, **changes)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True, error=FAILURE)])
    return held.id


# --- numbers --------------------------------------------------------------------------------------


def test_stats_tell_counts_with_their_relation(viewer, storage):
    in_every_state(storage)
    stats = ok(viewer.get("/stats/"))
    assert stats.keys() == StatsDocument().fields.keys()
    assert stats["counts"] == {
        state: {"value": 1, "relation": "eq"}
        for state in ("ready", "running", "scheduled", "retrying", "blocked", "dead")
    }
    assert stats["unknown_tasks"] == {"app.gone": {"value": 1, "relation": "eq"}}
    assert stats["workers"] == 1


def test_stats_count_no_further_than_they_say(viewer, storage):
    with CaptureQueriesContext(connection) as queries:
        ok(viewer.get("/stats/"))
    counting = [q["sql"] for q in queries if "COUNT(" in q["sql"].upper()]
    assert all("LIMIT" in sql or "rollup" in sql for sql in counting), counting


def test_many_readers_cost_one_look_a_second_and_see_what_they_may(viewer, make_caller, storage):
    first = ok(viewer.get("/page/findings/"))
    insert(storage, queue="mail")
    with CaptureQueriesContext(connection) as queries:
        assert ok(viewer.get("/page/findings/")) == first
        assert ok(viewer.get("/stats/"))["as_of"] == first["as_of"]
        problem(make_caller("kim").get("/page/findings/"), 403, "permission-denied")
    assert not [q["sql"] for q in queries if "jobqueue_job" in q["sql"]]
    Fresh.forget_all()
    assert ok(viewer.get("/stats/"))["backlog"]["value"] == 1


@pytest.mark.parametrize("period", ["59", "1e12", "nan", "x"])
def test_period_has_bounds(viewer, db, period):
    for address in ("/stats/", "/page/throughput/", "/page/latency/", "/page/errors/"):
        problem(viewer.get(address, {"period": period}), 400, "invalid-parameters")


def test_charts_show_what_was_done(viewer, storage):
    job_id = failed(storage)
    catch_up(storage)
    done = ok(viewer.get("/page/throughput/", {"period": "3600"}))
    assert [(line["name"], sum(line["counts"])) for line in done["lines"]] == [("failed", 1)]
    assert len(done["starts"]) == len(done["lines"][0]["counts"])
    by_queue = ok(viewer.get("/page/throughput/", {"by": "queue"}))
    assert [line["name"] for line in by_queue["lines"]] == ["default"]
    took = ok(viewer.get("/page/latency/", {"queue": "default"}))
    assert took["lines"][0]["attempts"] == 1
    assert sum(step["count"] for step in took["runs"]) == 1
    (group,) = ok(viewer.get("/page/errors/"))["results"]
    assert (group["count"], group["job_id"], group["dead"]["value"]) == (1, str(job_id), 1)
    alone = ok(viewer.get(f"/page/errors/{group['fingerprint']}/"))
    assert alone["results"] == [group]
    problem(viewer.get("/page/errors/none/"), 404, "not-found")
    attempts = ok(viewer.get("/stats/"))["attempts"]
    assert (attempts["count"], attempts["outcomes"]) == (1, {"failed": 1})


def test_findings_name_the_way_out(viewer, storage):
    control.pause("mail", control.Actor("kim", "shell"))
    insert(storage, queue="mail")
    found = ok(viewer.get("/page/findings/"))["results"]
    paused = next(finding for finding in found if finding["subject"] == "mail")
    assert paused["severity"] in ("warning", "info")
    assert paused["sentence"]
    assert paused["way_out"]


@pytest.mark.parametrize(
    "address",
    ["/stats/", "/queues/", "/limits/", "/workers/", "/schedules/", "/page/throughput/",
     "/page/latency/", "/page/errors/", "/page/findings/", "/page/bulk/"],
)  # fmt: skip
def test_whoever_sees_their_own_jobs_only_sees_nothing_of_all(make_caller, address):
    document = problem(make_caller("kim").get(address), 403, "permission-denied")
    assert document["permission"] == "jobqueue.view_job"


def test_filter_field_is_told_what_a_filter_means(viewer, db):
    told = ok(viewer.get("/page/filter/", {"q": " state:dead  queue:mail "}))
    assert (told["canonical"], told["states"]) == ("state:dead queue:mail", ["dead"])
    assert {"state", "args", "tag"} <= {key["name"] for key in told["keys"]}
    assert {"live", "dead"} <= set(told["state_values"])
    assert told["queue_values"] == ["default", "mail"]
    wrong = problem(viewer.get("/page/filter/", {"q": "colour:red"}), 400, "invalid-filter")
    assert wrong["position"] == 0
    problem(viewer.get("/page/filter/", {"q": "args.order:1"}), 403, "permission-denied")


# --- bulk -----------------------------------------------------------------------------------------


def test_bulk_is_looked_at_begun_stopped_and_resumed(operator, storage):
    jobs = {failed(storage) for _ in range(3)}
    insert(storage)
    asked = {"verb": "requeue", "filter": "state:dead", "dry_run": True}
    preview = ok(operator.post("/page/bulk/", asked))
    assert preview.keys() == bulk.BulkPreview().fields.keys()
    assert (preview["count"], preview["by_state"]) == (3, {"dead": 3})
    assert not BulkOperation.objects.exists()
    response = operator.post("/page/bulk/", {**asked, "dry_run": False, "spread": 600})
    begun = ok(response, 202)
    address = f"/page/bulk/{begun['id']}/"
    assert response["Location"].endswith(address)
    assert begun.keys() == bulk.BulkDocument().fields.keys()
    assert (begun["state"], begun["total"], begun["allowed_actions"]) == ("running", 3, ["stop"])
    for _ in range(2):
        assert ok(operator.post(f"{address}stop/"))["state"] == "stopped"
    for _ in range(2):
        assert ok(operator.post(f"{address}resume/"))["state"] == "running"
    while control.bulk_step("default"):
        pass
    ended = ok(operator.get(address))
    assert (ended["state"], ended["counts"], ended["fraction"]) == ("finished", {"requeued": 3}, 1)
    assert problem(operator.post(f"{address}stop/"), 409, "wrong-state")["current_state"] == (
        "finished"
    )
    assert ok(operator.get("/page/bulk/"))["results"][0]["id"] == begun["id"]
    assert Job.objects.filter(id__in=jobs, state="scheduled").count() >= 2


def test_bulk_needs_the_permission_of_its_verb(viewer, make_caller, storage):
    failed(storage)
    requeues = make_caller("rita", "view_job", "requeue_job")
    asked = {"verb": "requeue", "filter": "state:dead"}
    for body in (asked, {**asked, "dry_run": True}):
        document = problem(viewer.post("/page/bulk/", body), 403, "permission-denied")
        assert document["permission"] == "jobqueue.requeue_job"
    begun = ok(requeues.post("/page/bulk/", asked), 202)
    assert ok(viewer.get(f"/page/bulk/{begun['id']}/"))["allowed_actions"] == []
    for turn in ("stop", "resume"):
        problem(viewer.post(f"/page/bulk/{begun['id']}/{turn}/"), 403, "permission-denied")
    assert Action.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"verb": "delete", "filter": "state:dead"}, 400, "invalid-fields"),
        ({"verb": "requeue"}, 400, "invalid-fields"),
        ({"verb": "requeue", "filter": "state:dead", "ids": []}, 400, "invalid-fields"),
        ({"verb": "requeue", "filter": ""}, 400, "invalid-fields"),
        ({"verb": "requeue", "filter": "colour:red"}, 400, "invalid-filter"),
        ({"verb": "requeue", "filter": "state:running"}, 400, "invalid-argument"),
        ({"verb": "requeue", "filter": "state:dead args.order:42"}, 403, "permission-denied"),
        ({"verb": "requeue", "filter": "state:dead", "priority": 5}, 400, "invalid-argument"),
        ({"verb": "reprioritize", "filter": "state:ready"}, 400, "invalid-argument"),
        ({"verb": "reprioritize", "filter": "state:ready", "priority": 1e9}, 400,
         "invalid-fields"),
        ({"verb": "requeue", "filter": "state:dead", "spread": -1}, 400, "invalid-fields"),
        ({"verb": "requeue", "ids": ["17"]}, 400, "invalid-fields"),
        ({"verb": "requeue", "filter": "state:dead", "force": True}, 400, "invalid-fields"),
    ],
    ids=str,
)  # fmt: skip
def test_bulk_that_cannot_be_has_not_begun(operator, storage, body, status, code):
    failed(storage)
    problem(operator.post("/page/bulk/", body), status, code)
    assert not BulkOperation.objects.exists()


def test_place_in_a_filter_is_told(operator, db):
    wrong = {"verb": "requeue", "filter": "state:dead colour:red"}
    document = problem(operator.post("/page/bulk/", wrong), 400, "invalid-filter")
    assert (document["position"], document["errors"][0]["pointer"]) == (11, "/filter")


def test_documents_of_charts_are_as_described(viewer, storage):
    failed(storage)
    catch_up(storage)
    described: dict[str, type[Document]] = {
        "/page/throughput/": charts.ThroughputDocument,
        "/page/latency/": charts.LatencyDocument,
        "/page/errors/": charts.ErrorGroupList,
    }
    for address, document in described.items():
        assert ok(viewer.get(address)).keys() == document().fields.keys(), address
    assert json.loads(viewer.get("/page/errors/").content)
