"""The reaper: who is dead is decided by locks seen and missed, by leases, and by nobody's guess."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from jobqueue.conf import LOCK_LOOK_SECONDS
from jobqueue.engine.recovery import Death, recover
from jobqueue.ids import lock_key, new_identity
from jobqueue.models import Job, Worker
from jobqueue.runtime import reaper as reaper_module
from jobqueue.runtime.reaper import Reaper
from jobqueue.storage import life_file, storage_for
from jobqueue.storage.connections import open_connection
from tests.engine import faults
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import plain_job
from tests.runtime.clock import Clock
from tests.storage.making import refusing_ends, register
from tests.waiting import wait_until

POSTGRES = pytest.mark.postgres_only("on SQLite a file says who lives, not a session or a lease")


@pytest.fixture
def clock(monkeypatch):
    """The reaper's clock."""
    fake = Clock()
    monkeypatch.setattr(reaper_module, "time", fake)
    return fake


@pytest.fixture
def make_reaper(bench: Bench):
    """Makes reapers, as several processes run them."""
    made = []

    def make() -> Reaper:
        made.append(Reaper(bench.environment.options, bench.environment.direct))
        return made[-1]

    yield make
    for each in made:
        each.reset()


@pytest.fixture
def reaper(make_reaper) -> Reaper:
    return make_reaper()


@pytest.fixture
def lives(bench: Bench):
    """Takes the life lock of a worker on a session of its own; returns what ends that session."""
    opened = []

    def take(worker):
        def end():
            connection.close()
            wait_until(
                lambda: lock_key(worker) not in bench.storage.life_locks(), "the end of a session"
            )

        connection = open_connection("default")
        storage_for(connection).hold_life_lock(worker)
        opened.append(connection)
        return end

    yield take
    for connection in opened:
        connection.close()


def is_dead(worker) -> bool:
    return Worker.objects.get(pk=worker).dead


def expire(*workers) -> None:
    """Let leases run out."""
    past = timezone.now() - timedelta(seconds=5)
    Worker.objects.filter(pk__in=workers).update(lease_until=past)


def end_process(worker) -> None:
    """Let the kernel drop the lock of a life file, as it does when a process ends."""
    for path in list(life_file._held):
        if path.stem == worker.hex:
            life_file.LifeFile.release(life_file.LifeFile(path.parent.with_suffix(""), worker))


def holding(bench: Bench, worker) -> Ran:
    """Let `worker` run a job."""
    ran = Ran(bench.enqueue(leave, plain_job))
    names = [plain_job.module_path]
    (claim,) = bench.storage.claim_many(worker, [plain_job.queue_name], names, 1)
    assert claim.id == ran.id
    return ran


# --- life locks ----------------------------------------


@POSTGRES
def test_a_lock_seen_and_then_missing_for_long_enough_means_dead(bench, reaper, clock, lives):
    worker = register(bench.storage, direct=True)
    ran = holding(bench, worker)
    end_session = lives(worker)
    reaper.run_once()
    clock.advance(bench.environment.options.lease_seconds)
    reaper.run_once()
    end_session()
    reaper.run_once()
    clock.advance(LOCK_LOOK_SECONDS - 0.1)
    reaper.run_once()
    assert not is_dead(worker)
    clock.advance(0.1)
    reaper.run_once()
    assert is_dead(worker)
    assert Worker.objects.get(pk=worker).dead_reason == "killed or cut off"
    assert (ran.state, ran.job.suspicions) == ("ready", 1)


@POSTGRES
def test_a_lock_that_comes_back_in_between_proves_life(bench, reaper, clock, lives):
    worker = register(bench.storage, direct=True)
    end_session = lives(worker)
    reaper.run_once()
    clock.advance(bench.environment.options.lease_seconds)
    end_session()
    reaper.run_once()
    clock.advance(1.0)
    end_session = lives(worker)
    reaper.run_once()
    end_session()
    clock.advance(1.0)
    reaper.run_once()
    clock.advance(1.0)
    reaper.run_once()
    assert not is_dead(worker)


@POSTGRES
def test_a_lock_never_seen_proves_nothing_by_its_absence(bench, reaper, clock):
    worker = register(bench.storage, direct=True)
    for _ in range(10):
        reaper.run_once()
        clock.advance(bench.environment.options.lease_seconds)
    assert not is_dead(worker)


@POSTGRES
def test_the_lock_of_a_worker_behind_a_pooler_is_not_looked_for(bench, reaper, clock, lives):
    worker = register(bench.storage, direct=False)
    end_session = lives(worker)
    reaper.run_once()
    end_session()
    for _ in range(5):
        clock.advance(bench.environment.options.lease_seconds)
        reaper.run_once()
    assert not is_dead(worker)


@POSTGRES
def test_a_reaper_that_has_just_connected_waits_one_lease(bench, reaper, clock, lives):
    """After an outage everybody's locks are missing, and most workers are well."""
    worker = register(bench.storage, direct=True)
    end_session = lives(worker)
    reaper.run_once()
    end_session()
    lease = bench.environment.options.lease_seconds
    for _ in range(5):
        reaper.run_once()
        clock.advance((lease - 1.0) / 5)
    reaper.run_once()
    assert not is_dead(worker)
    clock.advance(1.1)
    reaper.run_once()
    assert is_dead(worker)


@POSTGRES
def test_what_was_seen_before_a_lost_connection_proves_nothing(bench, reaper, clock, lives):
    worker = register(bench.storage, direct=True)
    end_session = lives(worker)
    reaper.run_once()
    end_session()
    reaper.reset()
    for _ in range(5):
        clock.advance(bench.environment.options.lease_seconds)
        reaper.run_once()
    assert not is_dead(worker)


@POSTGRES
def test_what_was_seen_before_a_restart_of_the_server_proves_nothing(bench, reaper, clock, lives):
    worker = register(bench.storage, direct=True)
    end_session = lives(worker)
    reaper.run_once()
    clock.advance(bench.environment.options.lease_seconds)
    end_session()
    reaper.run_once()
    with faults.at("server_started_at", lambda storage, proceed: datetime.now(UTC)):
        clock.advance(LOCK_LOOK_SECONDS)
        reaper.run_once()
    assert not is_dead(worker)


@POSTGRES
def test_a_lock_that_is_present_does_not_save_an_expired_worker(bench, reaper, clock, lives):
    """A forked grandchild may keep the session."""
    worker = register(bench.storage, direct=True)
    lives(worker)
    reaper.run_once()
    expire(worker)
    reaper.run_once()
    assert is_dead(worker)


# --- leases ----------------------------------------


@POSTGRES
def test_a_worker_whose_lease_ran_out_is_dead_and_its_job_goes_on(bench, reaper):
    worker = register(bench.storage)
    ran = holding(bench, worker)
    reaper.run_once()
    assert (is_dead(worker), ran.state) == (False, "running")
    expire(worker)
    reaper.run_once()
    assert (is_dead(worker), ran.state, ran.job.suspicions) == (True, "ready", 1)
    assert Worker.objects.get(pk=worker).dead_reason == "lease expired"


@POSTGRES
def test_a_renewal_between_look_and_verdict_saves_the_worker(bench, reaper):
    def renew(storage, proceed):
        found = proceed()
        storage.renew_worker(worker, 60.0, False)
        return found

    worker = register(bench.storage)
    expire(worker)
    with faults.at("workers", faults.once(renew)):
        reaper.run_once()
    assert not is_dead(worker)


@pytest.mark.sqlite_only("on PostgreSQL a lease says who lives")
def test_on_one_host_a_process_that_ended_is_left_to_its_supervisor_for_a_moment(
    bench, reaper, clock
):
    """That knows which jobs had started; a reaper suspects them all."""
    worker = register(bench.storage)
    ran = holding(bench, worker)
    reaper.run_once()
    clock.advance(60.0)
    end_process(worker)
    reaper.run_once()
    clock.advance(LOCK_LOOK_SECONDS - 0.1)
    reaper.run_once()
    assert (is_dead(worker), ran.state) == (False, "running")
    clock.advance(0.1)
    reaper.run_once()
    assert (is_dead(worker), ran.state, ran.job.suspicions) == (True, "ready", 1)


@pytest.mark.sqlite_only("on PostgreSQL a lease says who lives")
def test_on_one_host_an_expired_lease_says_nothing(bench, reaper):
    worker = register(bench.storage)
    ran = holding(bench, worker)
    expire(worker)
    reaper.run_once()
    assert (is_dead(worker), ran.state) == (False, "running")


@pytest.mark.parametrize("reapers", [1, 3])
def test_several_reapers_count_one_death_once(bench, make_reaper, clock, reapers):
    worker = register(bench.storage)
    ran = holding(bench, worker)
    every = [make_reaper() for _ in range(reapers)]
    for each in every:
        each.run_once()
    expire(worker)
    end_process(worker)
    for _ in range(2):
        for each in every:
            each.run_once()
        clock.advance(LOCK_LOOK_SECONDS)
    assert (ran.state, ran.job.suspicions, len(ran.attempts)) == ("ready", 1, 1)


# --- nobody to blame ----------------------------------------


def supervised(bench: Bench, supervisors: int, each: int = 1) -> list[list]:
    """Register workers of several supervisors; each worker runs a job."""
    groups = []
    for _ in range(supervisors):
        boss = new_identity()
        groups.append([register(bench.storage, supervisor=boss) for _ in range(each)])
    return groups


@POSTGRES
@pytest.mark.parametrize(
    ("supervisors", "expired", "suspicions"),
    [(1, 1, 1), (2, 2, 1), (3, 1, 1), (3, 2, 0), (3, 3, 0), (4, 2, 1), (4, 3, 0)],
)
def test_a_fleet_that_expires_together_blames_nobody(
    bench, reaper, supervisors, expired, suspicions
):
    """More than half of at least three supervisors: that is the network, not the jobs."""
    bench.storage.mark_dead(bench.identity, "not part of the fleet")
    groups = supervised(bench, supervisors)
    jobs = [holding(bench, worker) for (worker,) in groups[:expired]]
    expire(*[worker for (worker,) in groups[:expired]])
    reaper.run_once()
    assert {job.state for job in jobs} == {"ready"}
    assert {job.job.suspicions for job in jobs} == {suspicions}


@POSTGRES
def test_reapers_that_share_the_verdicts_see_the_same_fleet(bench, make_reaper):
    """Each declares a part of it dead; what counts is how many had run out when it looked."""
    bench.storage.mark_dead(bench.identity, "not part of the fleet")
    workers = [worker for (worker,) in supervised(bench, 3)]
    jobs = [holding(bench, worker) for worker in workers]
    reaper = make_reaper()
    expire(*workers)

    def let_another_declare_two(storage, proceed):
        found = proceed()
        for worker in workers[:2]:
            storage.mark_expired(worker)
        return found

    with faults.at("workers", faults.once(let_another_declare_two)):
        reaper.run_once()
    assert (jobs[2].state, jobs[2].job.suspicions) == ("ready", 0)


@POSTGRES
def test_a_reaper_that_is_interrupted_leaves_its_verdict_to_the_next(bench, make_reaper):
    bench.storage.mark_dead(bench.identity, "not part of the fleet")
    workers = [worker for (worker,) in supervised(bench, 3)]
    jobs = [holding(bench, worker) for worker in workers]
    expire(*workers)

    def interrupt(storage, proceed):
        raise KeyboardInterrupt

    with faults.at("running_of", interrupt), pytest.raises(KeyboardInterrupt):
        make_reaper().run_once()
    assert [job.state for job in jobs] == ["running"] * 3
    assert all(is_dead(worker) for worker in workers)
    long_ago = timezone.now() - timedelta(seconds=30)
    Worker.objects.filter(dead=True).update(dead_at=long_ago)
    make_reaper().run_once()
    assert [(job.state, job.job.suspicions) for job in jobs] == [("ready", 0)] * 3


@POSTGRES
def test_supervisors_count_not_their_workers(bench, reaper):
    """One host with many workers is one host."""
    bench.storage.mark_dead(bench.identity, "not part of the fleet")
    many, *others = supervised(bench, 1, each=5) + supervised(bench, 2)
    jobs = [holding(bench, worker) for worker in many]
    expire(*many)
    reaper.run_once()
    assert {job.job.suspicions for job in jobs} == {1}
    assert not any(is_dead(worker) for (worker,) in others)


@POSTGRES
def test_a_restart_of_the_server_since_the_last_renewal_blames_nobody(bench, reaper, events):
    worker = register(bench.storage)
    ran = holding(bench, worker)
    expire(worker)
    long_ago = timezone.now() - timedelta(days=5_000)
    Worker.objects.filter(pk=worker).update(heartbeat_at=long_ago)
    reaper.run_once()
    assert (ran.state, ran.job.suspicions) == ("ready", 0)
    (expired,) = [event for event in events if event.name == "worker.expired"]
    assert expired.facts["blamed"] is False


# --- orphans and overdue jobs ----------------------------------------


def test_jobs_of_an_identity_without_a_row_are_taken_back(bench, reaper):
    worker = register(bench.storage)
    ran = holding(bench, worker)
    Worker.objects.filter(pk=worker).delete()
    reaper.run_once()
    assert ran.state == "ready"


def test_jobs_of_a_dead_worker_are_left_to_whoever_declared_it_for_a_while(bench, reaper):
    """A supervisor knows which of them had started; a reaper would suspect them all."""
    worker = register(bench.storage)
    ran = holding(bench, worker)
    bench.storage.mark_dead(worker, "killed")
    reaper.run_once()
    assert ran.state == "running"
    Worker.objects.filter(pk=worker).update(dead_at=timezone.now() - timedelta(seconds=30))
    reaper.run_once()
    assert ran.state == "ready"


def test_a_job_past_its_deadline_is_taken_from_a_live_worker(bench, reaper):
    ran = holding(bench, bench.identity)
    reaper.run_once()
    assert ran.state == "running"
    Job.objects.update(deadline=timezone.now() - timedelta(seconds=60))
    reaper.run_once()
    assert (ran.state, ran.attempt.outcome) == ("retrying", "timed_out")
    assert not is_dead(bench.identity)


def test_a_session_that_does_not_end_keeps_no_look_from_the_other_dead(bench, reaper):
    gone = [register(bench.storage) for _ in range(2)]
    jobs = [holding(bench, worker) for worker in gone]
    told = []

    def never_ends(storage, proceed):
        told.append(proceed.args[-1])
        return 1

    Worker.objects.filter(pk__in=gone).delete()
    with faults.at("is_direct", lambda storage, proceed: True):
        with faults.at("end_sessions", never_ends):
            reaper.run_once()
            assert [job.state for job in jobs] == ["ready"] * 2
            reaper.run_once()
        assert sorted(told) == sorted([[worker] for worker in gone] * 2)
        reaper.run_once()
        told.clear()
        with faults.at("end_sessions", never_ends):
            reaper.run_once()
    assert told == []


@pytest.mark.parametrize("refused", ["of the first", "of the last", "of both", "overdue"])
def test_a_job_that_the_database_refuses_to_move_holds_up_nobody_else(bench, reaper, refused):
    gone = sorted(register(bench.storage) for _ in range(2))
    first, last = (holding(bench, worker) for worker in gone)
    late, later = (holding(bench, bench.identity) for _ in range(2))
    Job.objects.filter(pk__in=[late.id, later.id]).update(
        deadline=timezone.now() - timedelta(seconds=60)
    )
    Worker.objects.filter(pk__in=gone).delete()
    stuck = {"of the first": [first], "of the last": [last], "of both": [first, last]}
    chosen = [ran.id for ran in stuck.get(refused, [late])]
    with refusing_ends(*chosen):
        reaper.run_once()
    moved = [ran for ran in (first, last, late, later) if ran.id not in chosen]
    assert "running" not in [ran.state for ran in moved]
    assert [Ran(job_id).state for job_id in chosen] == ["running"] * len(chosen)
    reaper.run_once()
    assert "running" not in [Ran(job_id).state for job_id in chosen]


def test_a_worker_that_cannot_be_recovered_is_told_of_once_and_holds_up_no_other(
    bench, reaper, events
):
    gone = sorted(register(bench.storage) for _ in range(2))
    jobs = [holding(bench, worker) for worker in gone]
    Worker.objects.filter(pk__in=gone).delete()

    def fail_for_the_first(storage, proceed):
        if proceed.args[-1] == [gone[0]]:
            raise ValueError("a bug")
        return proceed()

    with faults.at("running_of", fail_for_the_first):
        for _ in range(2):
            reaper.run_once()
    assert [job.state for job in jobs] == ["running", "ready"]
    told = [event.facts["worker"] for event in events if event.name == "worker.not_recovered"]
    assert told == [gone[0]]
    reaper.run_once()
    assert jobs[0].state == "ready"


def test_a_database_that_is_away_ends_the_look(bench, reaper):
    """The loop waits longer then, on a new connection, and says so once."""
    gone = [register(bench.storage) for _ in range(2)]
    for worker in gone:
        holding(bench, worker)
    Worker.objects.filter(pk__in=gone).delete()
    asked = []

    def away(storage, proceed):
        asked.append(proceed.args[-1])
        raise OperationalError("the connection is closed")

    with faults.at("running_of", away), pytest.raises(OperationalError):
        reaper.run_once()
    assert len(asked) == 1


def test_a_look_at_a_healthy_fleet_changes_nothing(bench, reaper):
    ran = holding(bench, bench.identity)
    before = list(Worker.objects.values()), list(Job.objects.values())
    for _ in range(3):
        assert reaper.run_once() is False
    assert (list(Worker.objects.values()), list(Job.objects.values())) == before
    assert ran.state == "running"


def test_a_worker_that_said_goodbye_is_nobodys_death(bench, reaper, events):
    worker = register(bench.storage)
    recover(bench.storage, Death(worker, "stopped", stopped=True), bench.environment.options)
    reaper.run_once()
    assert "worker.expired" not in [event.name for event in events]
