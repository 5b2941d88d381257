"""Requeue: a new budget for what has ended badly, and never another run of what succeeded."""

import uuid

import pytest

from jobqueue import control, hints
from jobqueue.compat import task_finished
from jobqueue.engine import changes
from jobqueue.exceptions import InvalidArgument, JobNotFound, RowLocked, WrongState
from jobqueue.models import Action
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.records import Success
from tests.storage.making import (
    buried,
    claim,
    claimed,
    ending,
    insert,
    new_job,
    register,
    row,
    run_sql,
)

LOCK_ROW = "SELECT id FROM jobqueue_job WHERE id = %s FOR UPDATE"


@pytest.fixture
def finished():
    """The ids of the jobs that task_finished was sent for."""
    heard = []

    def hear(sender, task_result, **kwargs):
        heard.append(task_result.id)

    task_finished.connect(hear)
    yield heard
    task_finished.disconnect(hear)


def succeeded(storage) -> uuid.UUID:
    held = claimed(storage)
    storage.finish_many(held.worker, [Success(held.id, held.fence, "1", 0.0, 0.0)])
    return held.id


def test_dead_job_is_ready_again_with_a_new_budget_and_its_history(storage, actor):
    job_id = buried(storage)

    outcome = control.requeue([job_id], actor)

    job = row(job_id)
    assert outcome.results == {job_id: "requeued"}
    assert (job.state, job.failures, job.attempts, job.finished_at) == ("ready", 0, 1, None)
    assert job.error_class == "builtins.ValueError"


def test_cancelled_job_can_be_requeued(storage, actor):
    (job_id,) = insert(storage)
    control.cancel([job_id], actor)

    assert str(control.requeue([str(job_id)], actor)) == "1 requeued"
    assert row(job_id).state == "ready"


def test_every_id_gets_its_own_answer(storage, actor):
    dead, unknown = buried(storage), uuid.uuid4()
    (ready,) = insert(storage)

    outcome = control.requeue([dead, ready, unknown], actor)

    assert outcome.results == {dead: "requeued", ready: "skipped: ready", unknown: "not found"}
    assert outcome.counts == {"requeued": 1, "not found": 1, "skipped: ready": 1}
    assert str(outcome) == "1 requeued, 1 not found, 1 skipped: ready"


def test_same_id_twice_is_one_job(storage, actor):
    job_id = buried(storage)
    assert control.requeue([job_id, str(job_id)], actor).counts == {"requeued": 1}


def test_one_action_row_says_who_did_what_to_which(storage, actor):
    job_id = buried(storage)
    control.requeue([job_id], actor)

    action = Action.objects.get()
    assert (action.actor, action.surface, action.verb) == ("kim", "shell", "requeue")
    assert (action.job_id, action.target, action.count) == (job_id, str(job_id), 1)


def test_action_of_many_jobs_lists_those_that_were_changed(storage, actor):
    dead = {buried(storage), buried(storage)}
    (ready,) = insert(storage)
    control.requeue([*dead, ready], actor)

    action = Action.objects.get()
    assert (action.job_id, action.target, action.count) == (None, "2 jobs", 2)
    assert {uuid.UUID(i) for i in action.detail["ids"]} == dead
    assert action.detail["counts"] == {"requeued": 2, "skipped: ready": 1}


def test_no_change_leaves_no_action(storage, actor):
    (ready,) = insert(storage)
    control.requeue([ready, uuid.uuid4()], actor)
    assert not Action.objects.exists()


def test_malformed_id_changes_nothing(storage, actor):
    job_id = buried(storage)
    with pytest.raises(InvalidArgument, match="'17'"):
        control.requeue([job_id, "17"], actor)
    assert row(job_id).state == "dead"


def test_succeeded_job_is_never_requeued(storage, actor):
    job_id = succeeded(storage)

    outcome = control.requeue([job_id], actor)

    assert outcome.results == {job_id: "skipped: succeeded"}
    assert row(job_id).state == "succeeded"
    with pytest.raises(WrongState, match="run again makes a new job") as caught:
        control.require_change(outcome)
    assert caught.value.current_state == "succeeded"
    assert caught.value.allowed_actions == ("run_again",)


def test_refusal_of_one_job_names_what_is_allowed(storage, actor):
    (ready,) = insert(storage)
    with pytest.raises(WrongState) as caught:
        control.require_change(control.requeue([ready], actor))
    assert set(caught.value.allowed_actions) == {
        "cancel",
        "reschedule",
        "run_now",
        "reprioritize",
        "move",
    }
    with pytest.raises(JobNotFound):
        control.require_change(control.requeue([uuid.uuid4()], actor))


@pytest.mark.postgres_only("SQLite has no row locks")
def test_locked_row_is_reported_and_the_others_are_changed(storage, other, actor):
    locked, free = buried(storage), buried(storage)

    with transaction_on(other.connection):
        run_sql(other.connection, LOCK_ROW, [locked])
        outcome = control.requeue([locked, free], actor)

    assert outcome.results == {locked: "locked", free: "requeued"}
    assert (row(locked).state, row(free).state) == ("dead", "ready")
    with pytest.raises(RowLocked, match="try again"):
        control.require_change(control.Outcome("requeued", {locked: "locked"}))


def test_job_that_moves_on_between_look_and_change_is_left_alone(storage, other, actor):
    """Another operator was first, and a worker has taken the job already."""
    job_id = buried(storage)
    other.requeue_many([job_id], 60.0)
    (held,) = claim(other, register(other))

    assert control.requeue([job_id], actor).results == {job_id: "skipped: running"}
    assert row(job_id).fence == held.fence


def test_hint_goes_out_after_the_commit(storage, actor, monkeypatch):
    job_id = buried(storage)
    seen = []
    monkeypatch.setattr(
        hints,
        "send",
        lambda alias, queues, *rest: seen.append((alias, set(queues), row(job_id).state)),
    )
    control.requeue([job_id], actor)
    assert seen == [("default", {"default"}, "ready")]


def test_jobs_beyond_one_transaction_are_changed_in_several(storage, actor, monkeypatch):
    monkeypatch.setattr(changes, "MAX_ROWS", 2)
    ids = [buried(storage) for _ in range(5)]

    assert control.requeue(ids, actor).counts == {"requeued": 5}
    assert sorted(Action.objects.values_list("count", flat=True)) == [1, 2, 2]


def test_requeued_job_runs_again_under_a_greater_fence(storage, actor):
    worker = register(storage)
    job_id = buried(storage, worker)
    control.requeue([job_id], actor)

    (held,) = claim(storage, worker)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True)])

    job = row(job_id)
    assert (job.state, job.fence, job.attempts, job.failures) == ("dead", 2, 2, 1)


def test_of_several_of_one_unique_key_one_lives_on_and_the_action_says_so(storage, actor, finished):
    worker = register(storage)
    dead = []
    for number in range(3):
        storage.insert_unique([new_job(id=uuid.UUID(int=number + 1), unique_key="k",
                                       unique_until="start")])  # fmt: skip
        (held,) = claim(storage, worker)
        storage.end_many([ending(held, "dead", outcome="failed", charged=True)])
        dead.append(held.id)
    control.requeue([dead[0]], actor)

    outcome = control.requeue(dead[1:], actor)

    assert outcome.results == {dead[1]: "superseded", dead[2]: "requeued"}
    assert str(outcome) == "1 requeued, 1 superseded"
    assert [row(each).state for each in dead] == ["cancelled", "cancelled", "ready"]
    action = Action.objects.order_by("-id").first()
    assert (action.count, action.detail["counts"]) == (2, {"requeued": 1, "superseded": 1})
    assert finished == [str(dead[0])]  # the others had been told of when they died


def test_a_requeue_that_changes_the_job_otherwise_says_why_and_leaves_an_action(storage, actor):
    worker = register(storage)
    jobs = [
        new_job(id=uuid.UUID(int=number + 1), unique_key="k", unique_until="start")
        for number in range(2)
    ]
    storage.insert_unique(jobs[:1])
    (held,) = claim(storage, worker)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True)])
    storage.insert_unique(jobs[1:])

    outcome = control.requeue([held.id], actor)

    with pytest.raises(WrongState, match="superseded"):
        control.require_change(outcome)
    assert Action.objects.get().detail["counts"] == {"superseded": 1}
