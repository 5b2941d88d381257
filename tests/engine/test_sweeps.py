"""Leaderless upkeep: promote, park and admit, prune; any number of processes at once."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobqueue.engine import retention, sweeps
from jobqueue.engine.retention import prune, scrub
from jobqueue.engine.sweeps import expire_due, promote_due, sweep_unknown
from jobqueue.models import Attempt, Job, JobTag, Step, Worker
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import atomic_job
from tests.storage.making import TASK, insert, register

DAY = 86_400.0


# --- promote ----------------------------------------


def test_due_jobs_become_ready_in_as_many_steps_as_it_takes(bench: Bench, monkeypatch):
    monkeypatch.setattr(sweeps, "SWEEP_LIMIT", 2)
    insert(bench.storage, 5, run_at=timezone.now() + timedelta(hours=1))
    insert(bench.storage, 1, queue="mail", run_at=timezone.now() + timedelta(hours=1))
    assert promote_due(bench.storage) == set()
    Job.objects.update(run_at=timezone.now() - timedelta(hours=1))
    assert promote_due(bench.storage) == {"default", "mail"}
    assert set(Job.objects.values_list("state", flat=True)) == {"ready"}


def test_promotion_keeps_rank_and_back_off(bench: Bench):
    insert(bench.storage, 1, run_at=timezone.now() + timedelta(hours=1))
    rank = Job.objects.get().rank
    bench.storage.promote(10, now=timezone.now() + timedelta(hours=2))
    assert (Job.objects.get().state, Job.objects.get().rank) == ("ready", rank)


# --- expire ----------------------------------------


def test_expired_jobs_are_cancelled_in_as_many_steps_as_it_takes(bench: Bench, monkeypatch):
    monkeypatch.setattr(sweeps, "SWEEP_LIMIT", 2)
    insert(bench.storage, 5, expires_at=timezone.now() - timedelta(seconds=1))
    insert(bench.storage, 1, expires_at=timezone.now() + timedelta(hours=1))
    assert expire_due(bench.storage) == 5
    assert expire_due(bench.storage) == 0
    assert Job.objects.filter(state="cancelled", reason="expired").count() == 5


# --- unknown tasks ----------------------------------------


def test_what_no_live_worker_knows_is_parked_and_admitted_once_somebody_does(bench: Bench):
    (known,) = insert(bench.storage)
    (unknown,) = insert(bench.storage, task="new.tasks.deployed")
    assert sweep_unknown(bench.storage) == set()
    assert (Ran(known).state, Ran(unknown).state) == ("ready", "blocked")
    assert Ran(unknown).job.reason == "unknown task"
    register(bench.storage, tasks=(TASK, "new.tasks.deployed"))
    assert sweep_unknown(bench.storage) == {"default"}
    assert (Ran(unknown).state, Ran(unknown).job.reason) == ("ready", "")
    assert Ran(unknown).attempts == []


def test_nothing_is_parked_while_no_worker_lives(bench: Bench):
    """Nobody knows anything then, which says nothing about the jobs."""
    bench.storage.mark_dead(bench.identity, "stopped")
    (job,) = insert(bench.storage, task="new.tasks.deployed")
    assert sweep_unknown(bench.storage) == set()
    assert Ran(job).state == "ready"


def test_what_a_dead_worker_knew_is_parked(bench: Bench):
    gone = register(bench.storage, tasks=("old.tasks.removed",))
    (job,) = insert(bench.storage, task="old.tasks.removed")
    sweep_unknown(bench.storage)
    assert Ran(job).state == "ready"
    bench.storage.mark_dead(gone, "stopped")
    sweep_unknown(bench.storage)
    assert Ran(job).state == "blocked"


def test_admission_keeps_the_jobs_place(bench: Bench):
    (job,) = insert(bench.storage, task="new.tasks.deployed")
    before = Ran(job).job
    sweep_unknown(bench.storage)
    register(bench.storage, tasks=("new.tasks.deployed",))
    sweep_unknown(bench.storage)
    after = Ran(job).job
    assert (after.rank, after.run_at) == (before.rank, before.run_at)


def test_more_unknown_jobs_than_one_sweep_moves_are_moved_by_the_next(bench: Bench, monkeypatch):
    monkeypatch.setattr(sweeps, "SWEEP_LIMIT", 3)
    insert(bench.storage, 5, task="new.tasks.deployed")
    (known,) = insert(bench.storage)
    sweep_unknown(bench.storage)
    assert Job.objects.filter(state="blocked").count() == 3
    sweep_unknown(bench.storage)
    assert Job.objects.filter(state="blocked").count() == 5
    assert Ran(known).state == "ready"


# --- retention ----------------------------------------


def ended(bench: Bench, state: str, days: float, count: int = 1) -> list:
    """Make jobs that ended `days` ago, with an attempt, a step and a tag each."""
    ids = insert(bench.storage, count, tags=("order:42",))
    then = timezone.now() - timedelta(days=days)
    Job.objects.filter(pk__in=ids).update(
        state=state, finished_at=then, fence=1, attempts=1, reason="x"
    )
    for each in ids:
        Attempt.objects.create(
            job_id=each,
            number=1,
            fence=1,
            worker=bench.identity,
            task=TASK,
            queue="default",
            outcome="succeeded" if state == "succeeded" else "failed",
            charged=state != "succeeded",
            started_at=then,
            finished_at=then,
        )
        Step.objects.create(job_id=each, name="s", result=1, fence=1, recorded_at=then)
    return ids


def left() -> tuple[int, int, int, int]:
    return tuple(model.objects.count() for model in (Job, Attempt, Step, JobTag))


def test_jobs_are_deleted_after_their_retention_with_all_their_history(bench: Bench):
    ended(bench, "succeeded", 8)
    ended(bench, "cancelled", 31)
    ended(bench, "succeeded", 6)
    ended(bench, "cancelled", 29)
    assert prune(bench.storage, bench.environment.options) == {"succeeded": 1, "cancelled": 1}
    assert left() == (2, 2, 2, 2)


def test_dead_letters_are_kept(bench: Bench):
    ended(bench, "dead", 5_000)
    prune(bench.storage, bench.environment.options)
    assert left() == (1, 1, 1, 1)


def test_dead_letters_go_where_somebody_asks_for_it(bench: Bench):
    ended(bench, "dead", 5_000)
    assert prune(bench.storage, bench.environment.options, retention={"dead": 30 * DAY}) == {
        "dead": 1
    }
    assert left() == (0, 0, 0, 0)


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_attempts_are_never_younger_than_a_day_when_they_go(bench: Bench, seconds):
    """They are the witness of an unknown COMMIT."""
    (young,) = ended(bench, "succeeded", 0.9)
    ended(bench, "succeeded", 1.1)
    pruned = prune(bench.storage, bench.environment.options, retention={"succeeded": seconds})
    assert pruned == {"succeeded": 1}
    assert list(Job.objects.values_list("pk", flat=True)) == [young]


def test_a_queue_may_have_times_of_its_own(bench: Bench):
    mail, reports, other = (ended(bench, "succeeded", 3)[0] for _ in range(3))
    Job.objects.filter(pk=mail).update(queue="mail")
    Job.objects.filter(pk=reports).update(queue="reports")
    own = {"mail": {"succeeded": 2 * DAY, "dead": DAY}, "reports": {"succeeded": None}}
    times = {"succeeded": 7 * DAY, "queues": own}
    options = bench.environment.options
    assert prune(bench.storage, options, retention=times) == {"succeeded": 1, "dead": 0}
    assert set(Job.objects.values_list("pk", flat=True)) == {reports, other}
    assert prune(bench.storage, options, retention=times | {"succeeded": DAY}) == {
        "succeeded": 1,
        "dead": 0,
    }
    assert list(Job.objects.values_list("pk", flat=True)) == [reports]


def test_arguments_are_deleted_after_their_time_and_the_job_cannot_run_again(make_bench):
    bench = make_bench(scrub_arguments=DAY)
    (old,) = ended(bench, "cancelled", 2)
    (young,) = ended(bench, "succeeded", 0.5)
    (dead,) = ended(bench, "dead", 2)
    assert scrub(bench.storage, bench.environment.options) == 1
    assert scrub(bench.storage, bench.environment.options) == 0
    arguments = dict(Job.objects.values_list("pk", "arguments"))
    assert arguments[old] == {"scrubbed": True}
    assert "args" in arguments[young]
    assert "args" in arguments[dead]
    Job.objects.filter(pk=old).update(task=atomic_job.module_path)
    bench.storage.requeue_many([old], 60.0)
    (claim,) = bench.claim()
    bench.flush(bench.execute(claim))
    again = Ran(old)
    assert again.state == "dead"
    assert "have been deleted (option SCRUB_ARGUMENTS)" in again.attempts[-1].error_message


def test_arguments_are_kept_where_nobody_asks(bench: Bench):
    ended(bench, "succeeded", 5_000)
    assert scrub(bench.storage, bench.environment.options) == 0


def test_waiting_and_running_jobs_are_never_deleted(bench: Bench):
    insert(bench.storage, 1, now=timezone.now() - timedelta(days=5_000))
    claim = bench.claim_one(leave)
    everything = dict.fromkeys(("ready", "running", "succeeded", "dead", "cancelled"), 0.0)
    prune(bench.storage, bench.environment.options, retention=everything)
    assert Job.objects.count() == 2
    assert Ran(claim.id).state == "running"


def test_pruning_goes_in_batches_and_stops_between_two_when_told(bench: Bench, monkeypatch):
    monkeypatch.setattr(retention, "PRUNE_BATCH", 2)
    ended(bench, "succeeded", 8, count=5)
    answers = [False, False, True]
    options = bench.environment.options
    pruned = prune(bench.storage, options, lambda: answers.pop(0), {"succeeded": DAY})
    assert (pruned, Job.objects.count()) == ({"succeeded": 4}, 1)
    assert prune(bench.storage, options) == {"succeeded": 1, "cancelled": 0}


def test_rows_of_workers_go_a_week_after_their_death_unless_they_hold_a_job(bench: Bench):
    long_ago = timezone.now() - timedelta(days=8)
    gone, holding, recent = (register(bench.storage) for _ in range(3))
    bench.enqueue(leave)
    bench.storage.claim_many(holding, ["default"], [atomic_job.module_path], 1)
    for worker in (gone, holding, recent):
        bench.storage.mark_dead(worker, "stopped")
    Worker.objects.filter(pk__in=[gone, holding]).update(dead_at=long_ago)
    prune(bench.storage, bench.environment.options)
    kept = set(Worker.objects.values_list("pk", flat=True))
    assert kept == {bench.identity, holding, recent}
