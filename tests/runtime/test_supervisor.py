"""The supervisor's own troubles: what it cannot do now keeps nobody from running jobs."""

import errno
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from jobqueue.runtime import restarts as restarts_module
from jobqueue.runtime import supervisor as supervisor_module
from jobqueue.runtime import upkeep as upkeep_module
from jobqueue.runtime.children import Child
from jobqueue.runtime.exit_codes import ABORTED
from jobqueue.runtime.ledger import Counters, Ledger
from jobqueue.runtime.supervisor import Supervisor
from jobqueue.runtime.worker_plan import WorkerPlan
from tests.engine.bench import Bench
from tests.runtime.clock import Clock
from tests.runtime.test_reaper import holding
from tests.storage.making import register


@pytest.fixture
def clock(monkeypatch):
    fake = Clock()
    for module in (supervisor_module, restarts_module, upkeep_module):
        monkeypatch.setattr(module, "time", fake)
    return fake


@pytest.fixture
def make_supervisor(bench: Bench):
    made = []

    def make(**changes) -> Supervisor:
        plan = WorkerPlan(backend="default", queues=("default",), maintenance=False, **changes)
        made.append(Supervisor(plan, bench.environment.options, bench.environment.direct))
        return made[-1]

    yield make
    for each in made:
        for loop in (each._recovery.loop, *each._upkeep._loops):
            loop._reset()


def names(events) -> list[str]:
    return [event.name for event in events]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# --- processes ----------------------------------------


@pytest.mark.parametrize("step", ["Popen", "pipe", "ledger"])
def test_a_process_that_cannot_be_started_is_tried_again_and_costs_nobody_his_jobs(
    make_supervisor, clock, events, monkeypatch, step
):
    def refuse(*args, **kwargs):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    supervisor = make_supervisor(processes=2)
    open_before = descriptors()
    with monkeypatch.context() as patch:
        if step == "Popen":
            patch.setattr(subprocess, "Popen", refuse)
        elif step == "pipe":
            patch.setattr(os, "pipe", refuse)
        else:
            patch.setattr(Ledger, "create", refuse)
        for _ in range(3):
            supervisor._start_missing()
            clock.advance(60.0)
        supervisor._start_missing()
        supervisor._start_missing()
    assert (supervisor.children, descriptors()) == ([], open_before)
    assert names(events).count("process.not_started") == 1
    supervisor._start_missing()
    assert supervisor.children == []  # it rests
    clock.advance(60.0)
    made = SimpleNamespace(alone=False, has_place=True)
    monkeypatch.setattr(supervisor, "_start", lambda alone: made)
    supervisor._start_missing()
    assert len(supervisor.children) == 2


def test_children_that_an_error_of_ours_ends_are_given_back_as_stopped(
    bench: Bench, make_supervisor, events
):
    supervisor = make_supervisor()
    worker = register(bench.storage)
    ran = holding(bench, worker)
    ledger = Ledger.create(1)
    ledger.start(ran.id, ran.job.fence, 60.0)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    control = os.open(os.devnull, os.O_WRONLY)
    child = Child(worker, process, control, ledger, False)
    supervisor.children.append(child)

    def break_down(received):
        raise RuntimeError("a fault of ours")

    supervisor._turn = break_down
    with pytest.raises(RuntimeError):
        supervisor.run()
    process.stdin.close()
    child.close()
    assert process.returncode == -9
    assert (ran.state, ran.job.suspicions, ran.attempt.outcome) == ("ready", 0, "lost")
    assert supervisor._exit_code == ABORTED
    assert names(events)[-1] == "worker.stopped"


# --- what it tells people ----------------------------------------


def report(supervisor, clock) -> None:
    clock.advance(2.0)
    supervisor._upkeep.report(Counters(), True)


def test_a_health_file_that_cannot_be_written_ends_nobody(make_supervisor, clock, events, tmp_path):
    folder = tmp_path / "run"
    path = folder / "health"
    supervisor = make_supervisor(health_file=path)
    for _ in range(3):
        report(supervisor, clock)
    folder.mkdir()
    report(supervisor, clock)
    assert path.exists()
    path.unlink()
    folder.rmdir()
    report(supervisor, clock)
    told = [name for name in names(events) if name.startswith("report.")]
    assert told == ["report.failing", "report.recovered", "report.failing"]


# --- suspects ----------------------------------------


def test_a_process_for_a_suspect_that_claims_nothing_is_not_started_at_every_turn(
    make_supervisor, clock
):
    """Another supervisor may have taken it, or its code base only may know the task."""
    supervisor = make_supervisor()
    supervisor._upkeep.suspect_waits = True
    pauses = []
    for _ in range(4):
        assert supervisor._is_lonely_wanted
        supervisor._restarts.note_lonely(claimed=0)
        before = clock.now
        while not supervisor._is_lonely_wanted:
            clock.advance(0.25)
        pauses.append(clock.now - before)
    assert pauses == [1.0, 2.0, 4.0, 8.0]
    supervisor._restarts.note_lonely(claimed=1)
    assert supervisor._is_lonely_wanted
