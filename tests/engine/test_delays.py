"""The delay before a retry is the task's own, whatever ended the attempt, whoever recorded it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobqueue.engine.interrupts import interrupt
from jobqueue.engine.recovery import Death, reap_overdue, recover
from jobqueue.engine.run_state import Stop
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import asked_for_delays, patient_job
from tests.engine.test_interrupts import go_on
from tests.storage.making import register


def fails(bench: Bench):
    def body(context):
        raise ValueError

    return bench.run(body, patient_job).id


def overstays(bench: Bench):
    def body(context):
        interrupt(context._run, Stop.TIME_LIMIT)  # lands in this very thread
        go_on()

    return bench.run(body, patient_job).id


def is_killed_for_its_time(bench: Bench):
    claim = claimed_elsewhere(bench)
    fenced = {(claim.id, claim.fence)}
    death = Death(claim.worker, "time", started=fenced, stopped=True, timed_out=fenced)
    recover(bench.storage, death, bench.environment.options)
    return claim.id


def is_reaped(bench: Bench):
    claim = claimed_elsewhere(bench)
    late = bench.storage.overdue(5.0, now=timezone.now() + timedelta(hours=1))
    reap_overdue(bench.storage, late, bench.environment.options)
    return claim.id


def kills_its_workers(bench: Bench):
    """The first loss costs no delay; the second does."""
    bench.enqueue(leave, patient_job)
    for _ in range(2):
        claim = claimed_elsewhere(bench, makes_one=False)
        recover(bench.storage, Death(claim.worker, "killed"), bench.environment.options)
    return claim.id


def claimed_elsewhere(bench: Bench, makes_one: bool = True):
    if makes_one:
        bench.enqueue(leave, patient_job)
    names = [patient_job.module_path]
    worker = register(bench.storage)
    (claim,) = bench.storage.claim_many(worker, [patient_job.queue_name], names, 1)
    return claim


@pytest.mark.parametrize(
    ("cause", "asked"),
    [
        (fails, (1, "ValueError")),
        (overstays, (1, "TimeLimitExceeded")),
        (is_killed_for_its_time, (1, "TimeLimitExceeded")),
        (is_reaped, (1, "TimeLimitExceeded")),
        (kills_its_workers, (2, "NoneType")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_tasks_own_delay_holds_for_every_cause(bench: Bench, cause, asked):
    asked_for_delays.clear()
    before = timezone.now()
    ran = Ran(cause(bench))
    assert ran.state == "retrying"
    delay = ran.job.run_at - before
    assert timedelta(seconds=60) <= delay < timedelta(seconds=90)
    assert asked_for_delays == [asked]
