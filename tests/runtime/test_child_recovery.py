"""Recovery by a supervisor: what cannot be dealt with holds nobody up, nothing is forgotten."""

import pytest
from django.db import OperationalError

from jobqueue.engine.recovery import Death
from jobqueue.events import subscribe
from jobqueue.models import Worker
from jobqueue.runtime.child_recovery import ChildRecovery
from jobqueue.storage.records import Moves
from tests.engine import faults
from tests.engine.bench import Bench
from tests.runtime.test_reaper import holding, is_dead
from tests.storage.making import register


@pytest.fixture
def recovery(bench: Bench):
    made = ChildRecovery(bench.environment.options, bench.environment.direct)
    yield made
    made.loop._reset()


@pytest.fixture
def dead(bench: Bench, recovery):
    """Three workers that hold a job each, and died; and their jobs."""
    workers = [register(bench.storage) for _ in range(3)]
    jobs = [holding(bench, worker) for worker in workers]
    for worker in workers:
        recovery.report(Death(worker, "killed", started=set()))
    return workers, jobs


def failing_for(worker):
    def hook(storage, proceed):
        if proceed.args[-1] == [worker]:
            raise OperationalError("on purpose")
        return proceed()

    return hook


def locked_for(worker):
    def hook(storage, proceed):
        endings = proceed.args[-1]
        if endings[0].worker == worker:
            return Moves((each.id, each.fence) for each in endings)
        return proceed()

    return hook


def turn(recovery) -> None:
    try:
        recovery.run_once()
    except OperationalError:
        recovery.loop._reset()


def test_a_death_that_cannot_be_dealt_with_holds_up_no_other(recovery, dead):
    workers, jobs = dead
    with faults.at("running_of", failing_for(workers[0])):
        for _ in range(4):
            turn(recovery)
    assert [job.state for job in jobs] == ["running", "ready", "ready"]
    assert not recovery.is_done
    turn(recovery)
    assert (jobs[0].state, recovery.is_done) == ("ready", True)


def test_a_row_that_stays_locked_holds_up_no_other_death(recovery, dead):
    workers, jobs = dead
    with faults.at("end_many", locked_for(workers[0])):
        assert recovery.run_once()  # the others wait
        assert recovery.run_once()
        assert not recovery.run_once()  # only that is left
        assert not recovery.run_once()
    assert [job.state for job in jobs] == ["running", "ready", "ready"]
    recovery.run_once()
    assert (jobs[0].state, recovery.is_done) == ("ready", True)


def test_several_that_stay_locked_do_not_make_it_turn_without_a_pause(recovery, dead):
    def locked(storage, proceed):
        return Moves((each.id, each.fence) for each in proceed.args[-1])

    with faults.at("end_many", locked):
        turns = [recovery.run_once() for _ in range(6)]
    assert turns == [True, True, False] * 2


def test_what_was_given_back_is_told_once_when_it_is_settled(bench: Bench, recovery):
    told = []
    stop = subscribe(told.append)
    worker = register(bench.storage)
    jobs = [holding(bench, worker) for _ in range(2)]
    recovery.report(Death(worker, "killed", started=set()))

    def all_but_one(storage, proceed):
        (left, *others) = proceed.args[-1]
        return Moves([(left.id, left.fence), *storage.end_many(others)])

    with faults.at("end_many", faults.once(all_but_one)):
        recovery.run_once()
    recovery.run_once()
    stop()
    (event,) = [event for event in told if event.name == "worker.recovered"]
    assert event.facts == {"worker": worker, "released": 2, "reaped": 0, "buried": 0}
    assert {job.state for job in jobs} == {"ready"}


def test_every_death_is_a_fact_before_the_first_is_dealt_with(bench: Bench, recovery, dead):
    """A supervisor that leaves in the middle leaves rows by which any reaper goes on likewise."""
    workers, _ = dead
    stopped = register(bench.storage)
    recovery.report(Death(stopped, "stopped", blamed=False, stopped=True))

    def interrupt(storage, proceed):
        raise KeyboardInterrupt

    with faults.at("running_of", interrupt), pytest.raises(KeyboardInterrupt):
        recovery.run_once()
    assert all(is_dead(worker) for worker in [*workers, stopped])
    assert Worker.objects.get(pk=stopped).blame == "stopped"


def test_closing_works_off_what_waits(recovery, dead):
    _, jobs = dead
    recovery.loop.start()
    recovery.close(60.0)
    assert [job.state for job in jobs] == ["ready"] * 3


def test_closing_does_not_wait_for_a_database_that_is_away(recovery, dead):
    def away(storage, proceed):
        raise OperationalError("the connection is closed")

    with faults.at("mark_dead", away):
        recovery.loop.start()
        recovery.close(3_600.0)
    assert not recovery.is_done
