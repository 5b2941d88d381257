"""Where the jobs of a dead worker go: the whole table of suspicion, and who adds none."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from jobqueue.engine.recovery import Death, recover
from jobqueue.exceptions import Snooze
from jobqueue.models import Job
from jobqueue.signals import job_died
from jobqueue.storage.records import Claim
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import atomic_job, plain_job
from tests.storage.making import register


@pytest.fixture
def suspicions(settings):
    """Sets SUSPICIONS of the alias, as a project does."""

    def put(number: int) -> None:
        alias = django_settings.TASKS["default"]
        options = {**alias["OPTIONS"], "SUSPICIONS": number}
        settings.TASKS = {"default": {**alias, "OPTIONS": options}}

    return put


def run_and_die(bench: Bench, **facts) -> Claim:
    """Let a new worker claim the next job and die; return the claim."""
    worker = register(bench.storage)
    names, queues = [atomic_job.module_path], [atomic_job.queue_name]
    claims = bench.storage.claim_many(worker, queues, names, 1)
    (claim,) = claims or bench.storage.claim_alone(worker, queues, names)
    recover(bench.storage, Death(worker, "killed by a test", **facts), bench.environment.options)
    return claim


def make_due(bench: Bench) -> None:
    """Promote what waits for its back-off."""
    Job.objects.filter(state="retrying").update(state="ready")


def die_until_dead(bench: Bench, ran: Ran, most: int = 6) -> list[tuple[str, bool]]:
    """Return (state, alone) after each death, until the job is dead."""
    seen = []
    while len(seen) < most and (not seen or seen[-1][0] != "dead"):
        make_due(bench)
        run_and_die(bench)
        seen.append((ran.state, ran.job.alone))
    return seen


# --- the table ----------------------------------------


@pytest.mark.parametrize(
    ("number", "table"),
    [
        (1, [("dead", False)]),
        (2, [("retrying", True), ("dead", True)]),
        (3, [("ready", False), ("retrying", True), ("dead", True)]),
        (4, [("ready", False), ("ready", False), ("retrying", True), ("dead", True)]),
    ],
)
def test_each_lost_worker_is_a_suspicion_until_the_job_is_poison(
    bench: Bench, suspicions, number, table
):
    suspicions(number)
    ran = Ran(bench.enqueue(leave))
    assert die_until_dead(bench, ran) == table
    assert ran.job.reason == "poison"
    assert ran.job.suspicions == number
    assert [attempt.outcome for attempt in ran.attempts] == ["lost"] * number
    assert not any(attempt.charged for attempt in ran.attempts)


def test_three_lost_workers_are_the_default(bench: Bench):
    assert len(die_until_dead(bench, Ran(bench.enqueue(leave)))) == 3


def test_a_suspect_that_must_run_alone_is_claimed_by_nobody_else(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    run_and_die(bench)
    run_and_die(bench)
    make_due(bench)
    names, queues = [atomic_job.module_path], [atomic_job.queue_name]
    assert bench.storage.claim_many(bench.identity, queues, names, 10) == []
    assert bench.storage.alone_waiting(queues, names) == 1
    (claim,) = bench.storage.claim_alone(bench.identity, queues, names)
    assert (claim.id, claim.alone) == (ran.id, True)


def test_a_death_while_alone_buries_whatever_the_count_says(bench: Bench, suspicions):
    suspicions(3)
    ran = Ran(bench.enqueue(leave))
    run_and_die(bench)
    run_and_die(bench)
    suspicions(100)
    make_due(bench)
    run_and_die(bench)
    assert (ran.state, ran.job.reason) == ("dead", "poison")


def test_success_clears_every_suspicion(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    run_and_die(bench)
    run_and_die(bench)
    bench.again(ran)
    assert (ran.state, ran.effects) == ("succeeded", ["done"])
    assert (ran.job.suspicions, ran.job.alone) == (0, False)


def test_a_success_in_a_batch_clears_every_suspicion(bench: Bench):
    ran = Ran(bench.enqueue(lambda context: 1, plain_job))
    worker = register(bench.storage)
    bench.storage.claim_many(worker, ["default"], [plain_job.module_path], 1)
    recover(bench.storage, Death(worker, "killed"), bench.environment.options)
    assert ran.job.suspicions == 1
    bench.again(ran, plain_job)
    assert (ran.state, ran.job.suspicions) == ("succeeded", 0)


@pytest.mark.parametrize("error", [ValueError, lambda: Snooze(1)], ids=["failure", "snooze"])
def test_a_suspect_stays_one_through_a_failure_and_a_snooze(bench: Bench, error):
    """Only a success shows that it can be run: one that fails by turns would never be poison."""

    def body(context):
        raise error()

    ran = Ran(bench.enqueue(body))
    run_and_die(bench)
    run_and_die(bench)
    bench.again(ran)
    assert (ran.job.suspicions, ran.job.alone) == (2, True)
    bench.storage.promote(10, now=timezone.now() + timedelta(days=1))
    run_and_die(bench)
    assert (ran.state, ran.job.reason) == ("dead", "poison")


def test_lost_workers_use_up_no_attempts(bench: Bench):
    ran = Ran(bench.enqueue(leave, atomic_job.using(max_attempts=1)))
    run_and_die(bench)
    run_and_die(bench)
    assert (ran.job.attempts, ran.job.failures) == (2, 0)
    bench.again(ran)
    assert ran.state == "succeeded"


def test_the_first_suspicion_keeps_the_jobs_place(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    before = ran.job
    run_and_die(bench)
    after = ran.job
    assert (after.rank, after.run_at) == (before.rank, before.run_at)


def test_a_later_suspicion_waits_for_its_back_off(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    run_and_die(bench)
    before = ran.job
    run_and_die(bench)
    after = ran.job
    assert after.run_at > before.run_at
    assert after.rank > before.rank


# --- who is to blame ----------------------------------------


def test_a_job_that_had_not_started_is_given_back_unharmed(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    before = ran.job
    claim = run_and_die(bench, started=set())
    after = ran.job
    assert (after.state, after.suspicions, after.alone) == ("ready", 0, False)
    assert (after.rank, after.run_at, after.attempts) == (before.rank, before.run_at, 0)
    assert after.fence == claim.fence
    assert ran.attempts == []


def test_of_several_jobs_only_those_that_had_started_are_suspects(bench: Bench):
    for _ in range(3):
        bench.enqueue(leave)
    worker = register(bench.storage)
    claims = bench.storage.claim_many(worker, ["default"], [atomic_job.module_path], 3)
    jobs = [Ran(claim.id) for claim in claims]
    started = {(claims[1].id, claims[1].fence)}
    recovered = recover(
        bench.storage, Death(worker, "killed", started=started), bench.environment.options
    )
    assert (recovered.released, recovered.reaped, recovered.buried) == (2, 1, 0)
    assert [job.job.suspicions for job in jobs] == [0, 1, 0]
    assert [len(job.attempts) for job in jobs] == [0, 1, 0]


def test_a_start_at_an_older_fence_is_no_start_of_this_run(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    claim = run_and_die(bench, started={(ran.id, 0)})
    assert claim.fence == 1
    assert (ran.state, ran.job.suspicions) == ("ready", 0)


def test_a_stopped_worker_makes_nobody_a_suspect(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    run_and_die(bench, stopped=True)
    assert (ran.state, ran.job.suspicions, ran.job.failures) == ("ready", 0, 0)
    assert (ran.attempt.outcome, ran.attempt.charged) == ("lost", False)
    assert ran.attempt.error_class == "jobqueue.exceptions.WorkerStopped"


def test_a_death_that_is_nobodys_fault_adds_no_suspicion(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    run_and_die(bench, blamed=False)
    assert (ran.state, ran.job.suspicions) == ("ready", 0)
    assert ran.attempt.error_class == "jobqueue.exceptions.WorkerLost"


def test_a_suspect_stays_one_through_what_is_nobodys_fault(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    run_and_die(bench)
    run_and_die(bench)
    make_due(bench)
    run_and_die(bench, blamed=False)
    assert (ran.state, ran.job.suspicions, ran.job.alone) == ("ready", 2, True)


# --- on_crash="bury" ----------------------------------------


@pytest.mark.parametrize("blamed", [True, False])
def test_a_job_that_must_not_run_twice_is_buried_at_its_first_loss(bench: Bench, blamed):
    ran = Ran(bench.enqueue(leave, replace(atomic_job, on_crash="bury")))
    run_and_die(bench, blamed=blamed)
    assert (ran.state, ran.job.reason) == ("dead", "worker lost")
    assert ran.attempt.outcome == "lost"


def test_a_job_that_must_not_run_twice_may_run_if_it_had_not_started(bench: Bench):
    ran = Ran(bench.enqueue(leave, replace(atomic_job, on_crash="bury")))
    run_and_die(bench, started=set())
    assert ran.state == "ready"


@pytest.mark.parametrize("facts", [{}, {"blamed": False}, {"stopped": True}], ids=repr)
@pytest.mark.parametrize(
    ("on_crash", "expected"), [("bury", ("dead", "worker lost", 0)), ("retry", ("ready", "", 0))]
)
def test_a_job_whose_end_was_not_written_did_not_kill_its_worker(
    bench: Bench, on_crash, expected, facts
):
    """Its code has run, nobody knows any more with what end: what must not run twice does not."""
    ran = Ran(bench.enqueue(leave, replace(atomic_job, on_crash=on_crash, max_attempts=1)))
    fenced = (ran.id, 1)
    run_and_die(bench, started=set(), unwritten={fenced}, **facts)
    assert (ran.state, ran.job.reason, ran.job.suspicions) == expected


# --- what is told ----------------------------------------


def test_a_job_buried_by_recovery_has_died(bench: Bench, suspicions):
    suspicions(1)
    died = []

    def receiver(sender, job_id, task, reason, **kwargs):
        died.append((job_id, task, reason))

    job_died.connect(receiver, weak=False)
    try:
        ran = Ran(bench.enqueue(leave))
        run_and_die(bench)
    finally:
        job_died.disconnect(receiver)
    assert died == [(ran.id, atomic_job.module_path, "poison")]


def test_the_attempt_says_why_the_worker_died(bench: Bench):
    ran = Ran(bench.enqueue(leave))
    run_and_die(bench)
    assert "killed by a test" in ran.attempt.error_message
