"""The watchdog: whom it stops and why, by a clock that the test moves."""

import threading
import time
from dataclasses import replace

import pytest

from jobqueue.conf import KILL_SLACK_SECONDS
from jobqueue.engine.run_state import Stop
from jobqueue.engine.runs import prepare
from jobqueue.events import subscribe
from jobqueue.runtime import watchdog as watchdog_module
from jobqueue.runtime.ledger import Ledger
from jobqueue.runtime.watchdog import Watchdog
from tests.engine.bench import Bench, leave
from tests.engine.tasks import plain_job


@pytest.fixture
def ledger():
    made = Ledger.create(10)
    yield made
    made.close()


@pytest.fixture
def run(bench: Bench):
    """A run whose code could be interrupted now; nobody runs it."""
    claim = bench.claim_one(leave, plain_job)
    made = prepare(claim, plain_job, bench.environment, bench.middleware)
    made.state.target = threading.get_ident()
    return made


@pytest.fixture
def stopped(monkeypatch):
    """Why runs were stopped, in order."""
    reasons: list[Stop] = []

    def interrupt(state, stop) -> bool:
        reasons.append(stop)
        return True

    monkeypatch.setattr(watchdog_module, "interrupt", interrupt)
    return reasons


@pytest.fixture
def dog(run, ledger):
    return Watchdog(lambda: [run], ledger, lambda: True)


def limit_of(run) -> float:
    return run.state.started + run.claim.timeout


def test_a_run_is_stopped_past_its_limit_and_not_before(dog, run, stopped):
    dog.look(limit_of(run) - 0.1)
    assert stopped == []
    dog.look(limit_of(run) + 0.1)
    assert stopped == [Stop.TIME_LIMIT]


def test_a_soft_limit_comes_before_the_deadline(run, ledger, stopped):
    soft = replace(run, task=plain_job.as_recorded(soft_timeout=5.0))
    dog = Watchdog(lambda: [soft], ledger, lambda: True)
    dog.look(run.state.started + 4.9)
    assert stopped == []
    dog.look(run.state.started + 5.1)
    assert stopped == [Stop.TIME_LIMIT]


@pytest.mark.parametrize("ended", ["not running", "finishing"])
def test_a_run_without_a_target_is_left_alone(dog, run, stopped, ended):
    run.state.target = None
    run.state.abandoned = True
    dog.look(limit_of(run) + 1)
    assert stopped == []


def test_what_stops_a_run_has_an_order(dog, run, stopped):
    run.state.cancel_reason = "typo"
    dog.look(time.monotonic())
    dog.look(limit_of(run) + 1)
    run.state.abandoned = True
    dog.look(limit_of(run) + 1)
    assert stopped == [Stop.ASKED, Stop.TIME_LIMIT, Stop.ABANDONED]


def test_it_tells_what_it_did(dog, run, stopped):
    told = []
    stop = subscribe(told.append)
    dog.look(limit_of(run) + 1)
    stop()
    (event,) = [e for e in told if e.name == "job.interrupted"]
    assert (event.facts["job"], event.facts["why"]) == (run.claim.id, "time_limit")


def test_an_abandoned_run_that_goes_on_is_disowned_after_the_slack(dog, run, ledger, stopped):
    now = time.monotonic()
    fenced = (run.claim.id, run.claim.fence)
    ledger.start(*fenced, 60.0)
    run.state.abandoned = True
    dog.look(now)
    dog.look(now + KILL_SLACK_SECONDS - 0.1)
    assert ledger.disowned() == set()
    dog.look(now + KILL_SLACK_SECONDS + 0.1)
    assert ledger.disowned() == {fenced}


def test_a_disowned_run_that_has_ended_needs_no_other_process(dog, run, ledger, stopped):
    entry = ledger.start(run.claim.id, run.claim.fence, 60.0)
    ledger.disown((run.claim.id, run.claim.fence))
    ledger.ended(entry)
    assert ledger.disowned() == set()


def test_it_gives_a_pulse_while_the_process_has_its_lease(run, ledger, stopped):
    has_lease = [True]
    dog = Watchdog(list, ledger, lambda: has_lease[0])
    assert ledger.pulse() == 0
    dog.look(0.0)
    dog.look(0.0)
    assert ledger.pulse() == 2
    has_lease[0] = False
    dog.look(0.0)
    assert ledger.pulse() == 2
