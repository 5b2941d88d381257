"""Taking jobs back from the dead: the order of it, what is in flight, and whom it never robs."""

from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from django.utils import timezone

from jobqueue.engine import recovery
from jobqueue.engine.recovery import Death, reap_overdue, recover, release_uncharged
from jobqueue.ids import new_identity, session_name
from jobqueue.models import Job, Worker
from jobqueue.states import Blame
from jobqueue.storage.records import Claim, Orphan
from tests.conftest import url_in_use
from tests.engine import faults
from tests.engine.bench import Bench, Ran, effects, leave
from tests.engine.cutting import is_there
from tests.engine.tasks import atomic_job, plain_job
from tests.storage.making import refusing_ends, register, run_sql
from tests.waiting import wait_until

POSTGRES = pytest.mark.postgres_only("SQLite has no sessions")


def claim_for(bench: Bench, worker, count: int = 1) -> list[Claim]:
    """Make jobs and let `worker` claim them."""
    for _ in range(count):
        bench.enqueue(leave, plain_job)
    names = [plain_job.module_path]
    found = bench.storage.claim_many(worker, [plain_job.queue_name], names, count)
    assert len(found) == count
    return found


def lose(bench: Bench, worker, **facts):
    """Take back what a dead worker held, as far as one pass comes."""
    return recover(bench.storage, Death(worker, "killed", **facts), bench.environment.options)


def settle(bench: Bench, worker, **facts):
    """Take back what a dead worker held, in as many passes as it takes; return what came of it."""
    passes = []

    def is_settled() -> bool:
        passes.append(lose(bench, worker, **facts))
        return passes[-1].is_settled

    wait_until(is_settled, "the end of a dead worker's sessions")
    return sum(passes, recovery.Recovered())


# --- order ----------------------------------------


def test_the_row_says_dead_before_anything_is_taken(bench: Bench):
    seen = []

    def look(storage, proceed):
        seen.append((Worker.objects.get(pk=worker).dead, Job.objects.get().state))
        return proceed()

    worker = register(bench.storage)
    claim_for(bench, worker)
    with faults.at("end_sessions", look), faults.at("end_many", look):
        lose(bench, worker)
    assert seen[:2] == [(True, "running"), (True, "running")]
    assert Job.objects.get().state == "ready"


def test_a_dead_worker_claims_nothing_more(bench: Bench):
    worker = register(bench.storage)
    lose(bench, worker)
    bench.enqueue(leave, plain_job)
    names = [plain_job.module_path]
    assert bench.storage.claim_many(worker, [plain_job.queue_name], names, 1) == []


def test_a_worker_is_declared_dead_once(bench: Bench):
    worker = register(bench.storage)
    lose(bench, worker)
    row = Worker.objects.get(pk=worker)
    recover(bench.storage, Death(worker, "again"), bench.environment.options)
    assert Worker.objects.get(pk=worker).dead_reason == row.dead_reason == "killed"


@POSTGRES
def test_sessions_that_bear_its_name_are_ended_and_no_others(bench: Bench, admin):
    worker = register(bench.storage)
    url = url_in_use("default")
    with (
        psycopg.connect(url, application_name=session_name(worker)) as its_own,
        psycopg.connect(url, application_name=session_name(new_identity())) as other,
    ):
        settle(bench, worker)
        assert not is_there(admin, its_own.info.backend_pid)
        assert is_there(admin, other.info.backend_pid)


@POSTGRES
def test_the_transaction_of_a_frozen_worker_is_rolled_back_with_its_session(bench: Bench, admin):
    worker = register(bench.storage)
    (claim,) = claim_for(bench, worker)
    frozen = psycopg.connect(url_in_use("default"), application_name=session_name(worker))
    frozen.execute(
        "INSERT INTO app_effect (job_id, label, created) VALUES (%s, 'frozen', now())",
        [str(claim.id)],
    )
    frozen.execute("SELECT 1 FROM jobqueue_job WHERE id = %s FOR NO KEY UPDATE", [claim.id])
    settle(bench, worker)
    with pytest.raises(psycopg.OperationalError):
        frozen.commit()
    frozen.close()
    assert (Ran(claim.id).state, effects(claim.id)) == ("ready", [])


@POSTGRES
def test_sessions_stay_where_the_options_say_so(make_bench, admin):
    bench = make_bench(end_sessions=False)
    worker = register(bench.storage)
    name = session_name(worker)
    with psycopg.connect(url_in_use("default"), application_name=name) as session:
        lose(bench, worker)
        assert is_there(admin, session.info.backend_pid)


# --- in flight ----------------------------------------


def test_a_claim_that_comes_in_late_is_taken_back_too(bench: Bench):
    """A statement in flight outlives its process; so nothing is settled until nothing is left."""
    worker = register(bench.storage)
    claim_for(bench, worker)
    late = bench.enqueue(leave, plain_job)

    def let_the_late_claim_in(storage, proceed):
        unmatched = proceed()
        Job.objects.filter(pk=late, state="ready").update(
            state="running",
            worker=worker,
            fence=1,
            claimed_at=timezone.now(),
            deadline=timezone.now() + timedelta(hours=1),
        )
        return unmatched

    with faults.at("end_many", faults.once(let_the_late_claim_in)):
        assert not lose(bench, worker).is_settled
    assert Ran(late).state == "running"
    recovered = lose(bench, worker)
    assert (recovered.is_settled, recovered.reaped) == (True, 1)
    assert bench.storage.running_of([worker]) == []


def test_a_session_that_does_not_end_at_once_is_told_again_with_each_pass(bench: Bench):
    """And nobody waits for it: its jobs go on, and so does whoever called."""
    left = [2, 1, 0]

    def sessions(storage, proceed):
        return left.pop(0)

    worker = register(bench.storage)
    (claim,) = claim_for(bench, worker)
    with faults.at("end_sessions", sessions):
        assert not lose(bench, worker).is_settled
        assert (left, Ran(claim.id).state) == ([1, 0], "ready")
        assert not lose(bench, worker).is_settled
        assert lose(bench, worker).is_settled
    assert left == []


@POSTGRES
def test_sessions_are_told_to_end_before_the_jobs_start_again(bench: Bench, admin):
    worker = register(bench.storage)
    (claim,) = claim_for(bench, worker)
    name = session_name(worker)

    def look(storage, proceed):
        wait_until(lambda: not is_there(admin, session.info.backend_pid), "the end of a session")
        assert Ran(claim.id).state == "running"
        return proceed()

    with (
        psycopg.connect(url_in_use("default"), application_name=name) as session,
        faults.at("end_many", look),
    ):
        lose(bench, worker)
    assert Ran(claim.id).state == "ready"


@POSTGRES
def test_a_row_that_somebody_has_locked_is_left_to_the_next_round(make_bench):
    """A reaper waits for no lock; where sessions cannot be ended it comes again."""
    bench = make_bench(end_sessions=False)
    worker = register(bench.storage)
    locked, free = claim_for(bench, worker, 2)
    with psycopg.connect(url_in_use("default")) as session:
        session.execute("SELECT 1 FROM jobqueue_job WHERE id = %s FOR NO KEY UPDATE", [locked.id])
        assert not lose(bench, worker).is_settled
        assert (Ran(locked.id).state, Ran(free.id).state) == ("running", "ready")
    assert lose(bench, worker).is_settled
    assert Ran(locked.id).state == "ready"


# --- refused rows ----------------------------------------


@pytest.mark.parametrize("position", [0, 2, 4])
def test_a_job_that_the_database_refuses_to_move_keeps_no_other_from_its_way(
    bench: Bench, position, events
):
    worker = register(bench.storage)
    found = claim_for(bench, worker, 5)
    wanted = ["ready"] * 5
    wanted[position] = "running"
    with refusing_ends(found[position].id):
        for _ in range(2):
            assert not lose(bench, worker).is_settled
            assert [Ran(claim.id).state for claim in found] == wanted
    (told,) = [event.facts for event in events if event.name == "job.not_recovered"]
    assert (told["job"], "refused by the project" in told["error"]) == (found[position].id, True)
    assert lose(bench, worker).is_settled
    assert Ran(found[position].id).state == "ready"


def test_a_claim_given_back_and_a_time_out_pass_over_what_is_refused_too(bench: Bench):
    found = sorted(claim_for(bench, bench.identity, 4), key=lambda claim: claim.id)
    held = sorted(bench.storage.running_of([bench.identity]), key=lambda job: job.id)
    with refusing_ends(found[0].id, found[3].id):
        assert release_uncharged(bench.storage, held[:2]) == 1
        assert reap_overdue(bench.storage, held[2:], bench.environment.options).reaped == 1
    states = [Ran(claim.id).state for claim in found]
    assert states == ["running", "ready", "retrying", "running"]


# --- never a live successor ----------------------------------------


@POSTGRES
def test_a_reaper_that_meets_a_lock_does_not_rob_the_successor(bench: Bench):
    """It neither waits for the lock nor goes by who held the job when it looked."""
    worker = register(bench.storage)
    (claim,) = claim_for(bench, worker)
    held = bench.storage.running_of([worker])
    successor = register(bench.storage)
    death = Death(worker, "killed")
    run_sql(bench.storage.connection, "SET lock_timeout = '3s'")
    with psycopg.connect(url_in_use("default")) as other_reaper:
        other_reaper.execute(
            "UPDATE jobqueue_job SET worker = %s, fence = fence + 1 WHERE id = %s",
            [successor, claim.id],
        )
        meanwhile = recovery.release(bench.storage, held, death, bench.environment.options)
    afterwards = recovery.release(bench.storage, held, death, bench.environment.options)
    assert meanwhile == afterwards == recovery.Recovered()
    ran = Ran(claim.id)
    assert (ran.state, ran.job.worker, ran.job.fence) == ("running", successor, claim.fence + 1)
    assert ran.attempts == []


def test_a_job_taken_over_between_look_and_release_stays_with_its_successor(bench: Bench):
    worker = register(bench.storage)
    (claim,) = claim_for(bench, worker)
    taken = []

    def take_over(storage, proceed):
        taken.append(bench.take_away(claim))
        return proceed()

    with faults.at("end_many", faults.once(take_over)):
        recovered = lose(bench, worker)
    assert (recovered.reaped, recovered.released, recovered.is_settled) == (0, 0, True)
    assert (Ran(claim.id).job.worker, Ran(claim.id).job.fence) == (
        taken[0].worker,
        taken[0].fence,
    )


def test_a_zombie_that_comes_back_after_recovery_changes_nothing(bench: Bench):
    claim = bench.claim_one(lambda context: leave(context, "zombie"))
    recover(
        bench.storage,
        Death(bench.identity, "lease expired"),
        replace(bench.environment.options, end_sessions=False),
    )
    ended = bench.execute(claim)
    bench.flush(ended)
    assert (Ran(claim.id).state, effects(claim.id)) == ("ready", [])


def test_a_finish_that_was_faster_than_the_reaper_stands(bench: Bench):
    claim = bench.claim_one(leave)

    def finish_first(storage, proceed):
        bench.execute(claim)
        return proceed()

    options = replace(bench.environment.options, end_sessions=False)
    with faults.at("end_many", faults.once(finish_first)):
        recovered = recover(bench.storage, Death(bench.identity, "killed"), options)
    assert (recovered.reaped, recovered.is_settled) == (0, True)
    assert (Ran(claim.id).state, effects(claim.id)) == ("succeeded", ["done"])
    assert Ran(claim.id).attempt.outcome == "succeeded"


# --- orphans ----------------------------------------


def test_an_identity_without_a_row_is_found_and_its_jobs_are_taken_back(bench: Bench):
    """A pruned worker's row hides nothing."""
    worker = register(bench.storage)
    (claim,) = claim_for(bench, worker)
    Worker.objects.filter(pk=worker).delete()
    assert bench.storage.orphan_workers() == [Orphan(worker, "no live row", Blame.JOBS, True)]
    assert lose(bench, worker).reaped == 1
    assert Ran(claim.id).state == "ready"
    assert bench.storage.orphan_workers() == []


def test_a_dead_worker_that_holds_jobs_is_an_orphan_after_some_patience(bench: Bench):
    worker = register(bench.storage)
    claim_for(bench, worker)
    bench.storage.mark_dead(worker, "died while recovering")
    assert bench.storage.orphan_workers(patience_seconds=60.0) == []
    assert [each.worker for each in bench.storage.orphan_workers()] == [worker]


@pytest.mark.parametrize(
    ("facts", "suspicions"),
    [({}, 1), ({"blamed": False}, 0), ({"blamed": False, "stopped": True}, 0)],
    ids=["crashed", "nobody's fault", "stopped"],
)
def test_whoever_goes_on_with_a_recovery_blames_as_who_began_it(bench: Bench, facts, suspicions):
    """Begun and given up: the process was killed, or left after a second signal."""
    worker = register(bench.storage)
    (claim,) = claim_for(bench, worker)
    Job.objects.update(on_crash="bury" if facts.get("stopped") else "retry")
    recovery.declare(bench.storage, Death(worker, "killed", **facts))
    (orphan,) = bench.storage.orphan_workers()
    death = recovery.death_of(orphan, direct=True)
    assert death.reason == "killed"
    recover(bench.storage, death, bench.environment.options)
    ran = Ran(claim.id)
    assert (ran.state, ran.job.suspicions) == ("ready", suspicions)


@pytest.mark.parametrize("direct", [True, False])
def test_sessions_are_told_by_name_only_where_each_is_its_workers_own(bench: Bench, direct):
    """Behind a pooler the name may be on a session that serves somebody else by now."""
    asked = []

    def ask(storage, proceed):
        asked.append(proceed.args[-1])
        return 0

    worker = register(bench.storage)
    (claim,) = claim_for(bench, worker)
    with faults.at("end_sessions", ask):
        assert lose(bench, worker, direct=direct).is_settled
    assert bool(asked) == direct
    assert Ran(claim.id).state == "ready"


def test_a_live_worker_is_no_orphan(bench: Bench):
    claim_for(bench, bench.identity)
    assert bench.storage.orphan_workers() == []


# --- give back, time out ----------------------------------------


def test_a_claim_nobody_holds_is_given_back_with_place_and_record(bench: Bench):
    (claim,) = claim_for(bench, bench.identity)
    before = Ran(claim.id).job
    held = bench.storage.running_of([bench.identity])
    assert release_uncharged(bench.storage, held) == 1
    after = Ran(claim.id).job
    assert (after.state, after.rank, after.run_at) == ("ready", before.rank, before.run_at)
    assert (after.attempts, after.suspicions, after.fence) == (0, 0, claim.fence)
    assert release_uncharged(bench.storage, held) == 0


def test_a_job_past_its_deadline_is_taken_from_a_live_worker_and_charged(bench: Bench):
    claim = bench.claim_one(leave, atomic_job.using(max_attempts=2))
    late = timezone.now() + timedelta(seconds=claim.timeout + 60)
    overdue = bench.storage.overdue(5.0, now=late)
    assert [job.id for job in overdue] == [claim.id]
    assert reap_overdue(bench.storage, overdue, bench.environment.options).reaped == 1
    ran = Ran(claim.id)
    assert (ran.state, ran.job.failures) == ("retrying", 1)
    assert (ran.attempt.outcome, ran.attempt.charged) == ("timed_out", True)
    assert ran.job.suspicions == 0
    assert not Worker.objects.get(pk=bench.identity).dead


def test_its_late_finish_is_refused(bench: Bench):
    def body(context):
        leave(context, "late")

    claim = bench.claim_one(body)
    held = bench.storage.running_of([bench.identity])
    reap_overdue(bench.storage, held, bench.environment.options)
    ended = bench.execute(claim)
    assert (ended.is_success, ended.failure) == (False, None)
    assert effects(claim.id) == []


def test_time_outs_use_up_the_attempts(bench: Bench):
    ran = Ran(bench.enqueue(leave, atomic_job.using(max_attempts=2)))
    starts = 0
    while bench.claim(atomic_job):
        starts += 1
        held = bench.storage.running_of([bench.identity])
        reap_overdue(bench.storage, held, bench.environment.options)
    assert starts == 2
    assert (ran.state, ran.job.reason) == ("dead", "out of attempts")
    assert [attempt.outcome for attempt in ran.attempts] == ["timed_out"] * 2


def test_a_job_within_its_deadline_and_the_slack_is_left_alone(bench: Bench):
    claim = bench.claim_one(leave)
    just_late = timezone.now() + timedelta(seconds=claim.timeout + 2)
    assert bench.storage.overdue(5.0) == []
    assert bench.storage.overdue(60.0, now=just_late) == []


def test_a_job_of_an_alias_that_left_the_settings_is_recovered_all_the_same(bench: Bench):
    worker = register(bench.storage)
    (claim,) = claim_for(bench, worker)
    Job.objects.filter(pk=claim.id).update(backend="gone", task="gone.tasks.vanished")
    for expected in ("ready", "retrying", "dead"):
        assert lose(bench, worker).is_settled
        assert Ran(claim.id).state == expected
        run_sql(
            bench.storage.connection,
            "UPDATE jobqueue_job SET state = 'ready' WHERE state = 'retrying'",
        )
        worker = register(bench.storage)
        names = ["gone.tasks.vanished"]
        bench.storage.claim_many(worker, ["default"], names, 1)
        bench.storage.claim_alone(worker, ["default"], names)
