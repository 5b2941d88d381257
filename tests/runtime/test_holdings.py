"""What a process holds, as its beat and its watchdog ask for it."""

from types import SimpleNamespace

import pytest

from jobqueue.events import subscribe
from jobqueue.ids import new_job_id
from jobqueue.runtime.holdings import Holdings


@pytest.fixture
def told():
    events = []
    stop = subscribe(lambda event: events.append(event.name))
    yield events
    stop()


@pytest.fixture
def holdings():
    return Holdings(drain=lambda: None)


def running(holdings: Holdings, **facts):
    """Add a run; return it and its (id, fence)."""
    facts = {"abandoned": False, "committed": False, "cancel_reason": None} | facts
    state = SimpleNamespace(**facts)
    run, job_id = SimpleNamespace(state=state), new_job_id()
    holdings[job_id] = (7, run)
    return run, (job_id, 7)


def test_claims_are_held_before_they_run(holdings):
    job_id = new_job_id()
    holdings[job_id] = (1, None)
    run, fenced = running(holdings)
    assert holdings.held() == {(job_id, 1), fenced}
    assert holdings.runs() == [run]


def test_a_run_that_lost_its_job_is_told(holdings, told):
    run, fenced = running(holdings)
    holdings.abandon(fenced)
    assert (run.state.abandoned, told) == (True, ["job.abandoned"])


def test_a_later_run_of_the_same_job_is_not_meant(holdings):
    run, (job_id, fence) = running(holdings)
    holdings.abandon((job_id, fence - 1))
    holdings.ask_to_stop((job_id, fence - 1), "typo")
    assert (run.state.abandoned, run.state.cancel_reason) == (False, None)


def test_a_job_that_has_committed_itself_may_go_on(holdings, told):
    """Its row is not running any more: it has succeeded."""
    run, fenced = running(holdings, committed=True)
    holdings.abandon(fenced)
    assert (run.state.abandoned, told) == (False, [])


def test_a_run_is_asked_once(holdings, told):
    run, fenced = running(holdings)
    holdings.ask_to_stop(fenced, "typo")
    holdings.ask_to_stop(fenced, "typo")
    assert (run.state.cancel_reason, told) == ("typo", ["job.asked_to_stop"])


def test_a_claim_that_has_not_started_is_asked_when_it_has(holdings, told):
    holdings[job_id := new_job_id()] = (1, None)
    holdings.ask_to_stop((job_id, 1), "typo")
    assert told == []


def test_a_run_is_told_once_that_its_job_is_gone_however_often_the_beat_asks(holdings, told):
    run, fenced = running(holdings)
    for _ in range(3):
        holdings.abandon(fenced)
    assert (run.state.abandoned, told) == (True, ["job.abandoned"])


def test_a_claim_that_has_not_started_has_nobody_to_tell(holdings, told):
    """It finds out when it ends: the guard refuses it."""
    holdings[job_id := new_job_id()] = (1, None)
    holdings.abandon((job_id, 1))
    assert told == []
