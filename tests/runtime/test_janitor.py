"""The janitor: what cannot be dealt with holds nobody else up, and nothing is forgotten."""

import pytest
from django.db import OperationalError

from jobqueue.engine.recovery import Death
from jobqueue.events import subscribe
from jobqueue.models import Worker
from jobqueue.runtime.janitor import Janitor
from jobqueue.storage.records import Moves
from tests.engine import faults
from tests.engine.bench import Bench
from tests.runtime.test_reaper import holding, is_dead
from tests.storage.making import register


@pytest.fixture
def janitor(bench: Bench):
    made = Janitor(bench.environment.options, bench.environment.direct)
    yield made
    made.loop._reset()


@pytest.fixture
def dead(bench: Bench, janitor):
    """Three workers that hold a job each, and died; and their jobs."""
    workers = [register(bench.storage) for _ in range(3)]
    jobs = [holding(bench, worker) for worker in workers]
    for worker in workers:
        janitor.report(Death(worker, "killed", started=set()))
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


def turn(janitor) -> None:
    try:
        janitor.run_once()
    except OperationalError:
        janitor.loop._reset()


def test_a_death_that_cannot_be_dealt_with_holds_up_no_other(janitor, dead):
    workers, jobs = dead
    with faults.at("running_of", failing_for(workers[0])):
        for _ in range(4):
            turn(janitor)
    assert [job.state for job in jobs] == ["running", "ready", "ready"]
    assert not janitor.is_done
    turn(janitor)
    assert (jobs[0].state, janitor.is_done) == ("ready", True)


def test_a_row_that_stays_locked_holds_up_no_other_death(janitor, dead):
    workers, jobs = dead
    with faults.at("end_many", locked_for(workers[0])):
        assert janitor.run_once()  # the others wait
        assert janitor.run_once()
        assert not janitor.run_once()  # only that is left
        assert not janitor.run_once()
    assert [job.state for job in jobs] == ["running", "ready", "ready"]
    janitor.run_once()
    assert (jobs[0].state, janitor.is_done) == ("ready", True)


def test_several_that_stay_locked_do_not_make_it_turn_without_a_pause(janitor, dead):
    def locked(storage, proceed):
        return Moves((each.id, each.fence) for each in proceed.args[-1])

    with faults.at("end_many", locked):
        turns = [janitor.run_once() for _ in range(6)]
    assert turns == [True, True, False] * 2


def test_what_was_given_back_is_told_once_when_it_is_settled(bench: Bench, janitor):
    told = []
    stop = subscribe(told.append)
    worker = register(bench.storage)
    jobs = [holding(bench, worker) for _ in range(2)]
    janitor.report(Death(worker, "killed", started=set()))

    def all_but_one(storage, proceed):
        (left, *others) = proceed.args[-1]
        return Moves([(left.id, left.fence), *storage.end_many(others)])

    with faults.at("end_many", faults.once(all_but_one)):
        janitor.run_once()
    janitor.run_once()
    stop()
    (event,) = [event for event in told if event.name == "worker.recovered"]
    assert event.facts == {"worker": worker, "released": 2, "reaped": 0, "buried": 0}
    assert {job.state for job in jobs} == {"ready"}


def test_every_death_is_a_fact_before_the_first_is_dealt_with(bench: Bench, janitor, dead):
    """A supervisor that leaves in the middle leaves rows by which any reaper goes on likewise."""
    workers, _ = dead
    stopped = register(bench.storage)
    janitor.report(Death(stopped, "stopped", blamed=False, stopped=True))

    def interrupt(storage, proceed):
        raise KeyboardInterrupt

    with faults.at("running_of", interrupt), pytest.raises(KeyboardInterrupt):
        janitor.run_once()
    assert all(is_dead(worker) for worker in [*workers, stopped])
    assert Worker.objects.get(pk=stopped).blame == "stopped"


def test_closing_works_off_what_waits(janitor, dead):
    _, jobs = dead
    janitor.loop.start()
    janitor.close(60.0)
    assert [job.state for job in jobs] == ["ready"] * 3


def test_closing_does_not_wait_for_a_database_that_is_away(janitor, dead):
    def away(storage, proceed):
        raise OperationalError("the connection is closed")

    with faults.at("mark_dead", away):
        janitor.loop.start()
        janitor.close(3_600.0)
    assert not janitor.is_done
