"""What a supervisor ends its children for, seen in shared memory by a clock that the test moves."""

import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest

from jobqueue.conf import KILL_SLACK_SECONDS, options_for
from jobqueue.events import subscribe
from jobqueue.ids import new_identity, new_job_id
from jobqueue.runtime import deadlines as deadlines_module
from jobqueue.runtime import ledger as ledger_module
from jobqueue.runtime.deadlines import Deadlines, Pulse, Sentence
from jobqueue.runtime.ledger import Ledger
from tests.runtime.clock import Clock


@dataclass
class Child:
    """A process that does nothing, in a group of its own, and its ledger."""

    identity: UUID = field(default_factory=new_identity)
    ledger: Ledger = field(default_factory=lambda: Ledger.create(10))
    pulse: Pulse = field(default_factory=Pulse)
    sentence: Sentence | None = None
    process: subprocess.Popen | None = None

    @property
    def pid(self) -> int:
        if self.process is None:
            code = "import time; time.sleep(3600)"
            self.process = subprocess.Popen([sys.executable, "-c", code], process_group=0)
        return self.process.pid


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(deadlines_module, "time", made)
    monkeypatch.setattr(ledger_module, "time", made)
    return made


@pytest.fixture
def child():
    made = Child()
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.wait()
    made.ledger.close()


@pytest.fixture
def options():
    return replace(options_for("default"), lease_seconds=15.0, heartbeat_seconds=5.0)


@pytest.fixture
def deadlines(options):
    return Deadlines(options, one_host=False)


def start(child: Child, timeout: float):
    fenced = (new_job_id(), 1)
    child.ledger.start(*fenced, timeout)
    return fenced


def watch(deadlines: Deadlines, child: Child, clock: Clock, seconds: float) -> None:
    """Let time pass under the supervisor's eyes."""
    for _ in range(round(seconds / 0.25)):
        clock.advance(0.25)
        deadlines.enforce([child])


# --- deadlines ----------------------------------------


def test_a_child_with_a_job_past_its_deadline_and_the_slack_is_killed(deadlines, child, clock):
    late, in_time = start(child, 10.0), start(child, 600.0)
    watch(deadlines, child, clock, 10 + KILL_SLACK_SECONDS)
    assert child.sentence is None
    watch(deadlines, child, clock, 0.5)
    assert child.process.wait() == -signal.SIGKILL
    death = child.sentence.as_death(child.identity, child.ledger)
    assert (death.timed_out, death.started) == ({late}, {late, in_time})
    assert (death.blamed, death.stopped) == (False, True)


def test_a_job_that_ended_before_the_process_was_gone_is_not_charged(deadlines, child, clock):
    entry = child.ledger.start(new_job_id(), 1, 1.0)
    watch(deadlines, child, clock, 5)
    child.ledger.ended(entry)
    assert child.sentence.as_death(child.identity, child.ledger).timed_out == set()


def test_what_a_job_has_started_is_killed_with_it(deadlines, clock):
    code = "import subprocess; print(1, flush=True); subprocess.run(['sleep', '3600'])"
    argv = [sys.executable, "-c", code]
    process = subprocess.Popen(argv, process_group=0, stdout=subprocess.PIPE)
    child = Child(process=process)
    assert process.stdout.readline() == b"1\n"
    start(child, 1.0)
    watch(deadlines, child, clock, 5)
    assert process.wait() == -signal.SIGKILL
    assert process.stdout.read() == b""  # the end: the program that would hold it open is gone too
    process.stdout.close()
    child.ledger.close()


def test_a_child_is_killed_once_and_told_of_once(deadlines, child, clock):
    told = []
    stop = subscribe(told.append)
    job_id, _ = start(child, 1.0)
    watch(deadlines, child, clock, 10)
    stop()
    (event,) = [e for e in told if e.name == "process.killed"]
    assert event.facts["jobs"] == str(job_id)


def test_a_kill_that_failed_is_tried_again(deadlines, child, clock, monkeypatch):
    with monkeypatch.context() as refusing:
        refusing.setattr(deadlines_module.os, "killpg", refuse)
        start(child, 1.0)
        watch(deadlines, child, clock, 5)
        assert child.process is None or child.process.poll() is None
    assert child.pid
    watch(deadlines, child, clock, 0.25)
    assert child.process.wait() == -signal.SIGKILL


def refuse(*_):
    raise PermissionError


def test_a_child_that_is_gone_already_is_no_error(deadlines, child, clock):
    assert child.pid
    child.process.kill()
    child.process.wait()
    start(child, 1.0)
    watch(deadlines, child, clock, 5)
    assert child.sentence is not None


def test_a_run_that_was_disowned_and_goes_on_costs_its_process(deadlines, child, clock):
    fenced, other = start(child, 600.0), start(child, 600.0)
    child.ledger.disown(fenced)
    watch(deadlines, child, clock, 0.25)
    death = child.sentence.as_death(child.identity, child.ledger)
    assert (death.timed_out, death.started) == (set(), {fenced, other})
    assert (death.blamed, death.stopped) == (False, True)


# --- frozen ----------------------------------------


def test_a_child_without_a_pulse_for_longer_than_its_lease_is_killed(deadlines, child, clock):
    fenced = start(child, 600.0)
    child.ledger.beat()
    watch(deadlines, child, clock, 20)
    assert child.sentence is None
    watch(deadlines, child, clock, 1)
    death = child.sentence.as_death(child.identity, child.ledger)
    assert (death.reason, death.blamed, death.stopped) == ("frozen", True, False)
    assert (death.started, death.timed_out) == ({fenced}, set())


def test_a_pulse_keeps_a_child(deadlines, child, clock):
    for _ in range(10):
        child.ledger.beat()
        watch(deadlines, child, clock, 15)
    assert child.sentence is None


def test_a_child_that_has_not_begun_to_live_is_waited_for(deadlines, child, clock):
    watch(deadlines, child, clock, 60)
    assert child.sentence is None


def test_a_supervisor_that_was_frozen_itself_has_seen_no_silence(deadlines, child, clock):
    child.ledger.beat()
    watch(deadlines, child, clock, 1)
    clock.advance(3_600)
    watch(deadlines, child, clock, 10)
    assert child.sentence is None


@pytest.mark.parametrize("has_job", [True, False])
def test_on_one_host_only_an_idle_child_is_ended_for_its_silence(options, child, clock, has_job):
    """A job that holds the interpreter is slow there, nobody takes it away."""
    if has_job:
        start(child, 600.0)
    child.ledger.beat()
    watch(Deadlines(options, one_host=True), child, clock, 30)
    assert (child.sentence is None) == has_job


def test_where_workers_live_on_without_a_lease_nobody_is_killed_for_it(options, child, clock):
    child.ledger.beat()
    watch(Deadlines(replace(options, self_exit=False), one_host=False), child, clock, 60)
    assert child.sentence is None
