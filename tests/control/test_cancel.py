"""Cancel and discard: waiting jobs at once, running ones by force, dead ones for good."""

import pytest
from django.db import transaction

from jobqueue import control, events
from jobqueue.compat import task_finished
from jobqueue.exceptions import LeaseLost, WrongState
from jobqueue.models import Action, CancelRequest
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.records import Success
from tests.storage.making import attempts, buried, claimed, ending, insert, row, states


@pytest.fixture
def heard():
    """The jobs whose end was announced."""
    ended = []

    def receive(*, task_result, **kwargs):
        ended.append(task_result.id)

    task_finished.connect(receive)
    yield ended
    task_finished.disconnect(receive)


def test_waiting_job_is_cancelled_at_once(storage, actor, heard):
    (job_id,) = insert(storage)

    assert control.cancel([job_id], actor, reason="typo").counts == {"cancelled": 1}

    job = row(job_id)
    assert (job.state, job.reason) == ("cancelled", "typo")
    assert heard == [str(job_id)]
    assert Action.objects.get().detail["reason"] == "typo"


def test_running_job_is_asked_and_its_row_left_alone(storage, actor, heard):
    held = claimed(storage)
    before = row(held.id).version

    outcome = control.cancel([held.id], actor, reason="typo")

    assert outcome.results == {held.id: "asked"}
    assert control.require_change(outcome).changed == 1
    assert (row(held.id).state, row(held.id).version) == ("running", before)
    assert CancelRequest.objects.get().reason == "typo"
    action = Action.objects.get()
    assert (action.verb, action.count, action.detail["counts"]) == ("cancel", 1, {"asked": 1})
    assert heard == []


def test_one_operation_cancels_what_waits_and_asks_what_runs(storage, actor, heard):
    held = claimed(storage)
    (waiting,) = insert(storage)
    told = []
    stop = events.subscribe(told.append)

    outcome = control.cancel([held.id, waiting], actor)

    stop()
    assert str(outcome) == "1 cancelled, 1 asked"
    assert Action.objects.get().count == 2
    counts = {event.name: event.facts["count"] for event in told}
    assert counts == {"jobs.cancelled": 1, "jobs.asked": 1}
    assert heard == [str(waiting)]


def test_requeueing_withdraws_the_request_of_the_life_that_ended(storage, actor):
    """Otherwise the sweep would cancel what somebody has just made ready."""
    held = claimed(storage)
    other = claimed(storage)
    control.cancel([held.id, other.id], actor)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True)])

    assert str(control.requeue([held.id, other.id], actor)) == "1 requeued, 1 skipped: running"

    assert [request.job_id for request in CancelRequest.objects.all()] == [other.id]


def test_forced_cancel_ends_the_run_and_refuses_its_worker(storage, actor, heard):
    held = claimed(storage)

    assert control.cancel([held.id], actor, force=True).counts == {"cancelled": 1}

    job = row(held.id)
    assert (job.state, job.fence, job.worker) == ("cancelled", held.fence + 1, None)
    assert [a.outcome for a in attempts(held.id)] == ["cancelled"]
    assert heard == [str(held.id)]
    with pytest.raises(LeaseLost), transaction_on(storage.connection):
        storage.finish_one(held, "null", 0.0)


def test_force_cancels_waiting_and_running_jobs_in_one_action(storage, actor):
    held = claimed(storage)
    (waiting,) = insert(storage)

    outcome = control.cancel([held.id, waiting], actor, force=True)

    assert outcome.counts == {"cancelled": 2}
    assert states(held.id, waiting) == ["cancelled", "cancelled"]
    assert Action.objects.get().count == 2


@pytest.mark.postgres_only("SQLite has no row locks")
def test_job_about_to_finish_is_locked_and_its_success_stands(storage, other, actor):
    held = claimed(storage)

    with transaction_on(other.connection):
        other.finish_one(held, "1", 0.0)
        outcome = control.cancel([held.id], actor, force=True)

    assert outcome.results == {held.id: "locked"}
    assert row(held.id).state == "succeeded"
    assert not Action.objects.exists()


def test_job_that_finished_first_is_not_cancelled(storage, other, actor):
    held = claimed(storage)
    other.finish_many(held.worker, [Success(held.id, held.fence, "1", 0.0, 0.0)])

    assert control.cancel([held.id], actor, force=True).results == {held.id: "skipped: succeeded"}


def test_dead_job_is_discarded_not_cancelled(storage, actor):
    job_id = buried(storage)
    with pytest.raises(WrongState, match="Discard"):
        control.require_change(control.cancel([job_id], actor))

    assert control.discard([job_id], actor, reason="obsolete").counts == {"discarded": 1}

    job = row(job_id)
    assert (job.state, job.reason) == ("cancelled", "obsolete")
    assert Action.objects.get().verb == "discard"


def test_only_dead_jobs_are_discarded(storage, actor):
    (ready,) = insert(storage)
    assert control.discard([ready], actor).results == {ready: "skipped: ready"}


def test_change_and_action_are_one_transaction(storage, actor, heard, monkeypatch):
    """Neither stands without the other."""
    (job_id,) = insert(storage)
    monkeypatch.setattr(Action.objects, "using", None)
    with pytest.raises(TypeError):
        control.cancel([job_id], actor)
    assert row(job_id).state == "ready"
    assert heard == []


def test_operation_stands_and_falls_with_the_callers_transaction(storage, actor, heard):
    (job_id,) = insert(storage)

    with transaction.atomic():
        assert control.cancel([job_id], actor).counts == {"cancelled": 1}
        assert heard == []
        transaction.set_rollback(True)

    assert row(job_id).state == "ready"
    assert not Action.objects.exists()
    assert heard == []


def test_event_tells_how_many_and_who(storage, actor):
    (job_id,) = insert(storage)
    told = []
    stop = events.subscribe(told.append)
    control.cancel([job_id], actor)
    stop()
    (event,) = [e for e in told if e.name == "jobs.cancelled"]
    assert event.facts == {"count": 1, "actor": "kim", "surface": "shell"}
