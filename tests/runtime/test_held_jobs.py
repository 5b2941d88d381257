"""What a process holds, as its beat and its watchdog ask for it."""

from types import SimpleNamespace

import pytest

from jobqueue.events import subscribe
from jobqueue.ids import new_job_id
from jobqueue.runtime.held_jobs import HeldJobs


@pytest.fixture
def told():
    events = []
    stop = subscribe(lambda event: events.append(event.name))
    yield events
    stop()


@pytest.fixture
def held_jobs():
    return HeldJobs(drain=lambda: None)


def running(held_jobs: HeldJobs, **facts):
    """Add a run; return it and its (id, fence)."""
    facts = {"abandoned": False, "committed": False, "cancel_reason": None} | facts
    state = SimpleNamespace(**facts)
    run, job_id = SimpleNamespace(state=state), new_job_id()
    held_jobs[job_id] = (7, run)
    return run, (job_id, 7)


def test_claims_are_held_before_they_run(held_jobs):
    job_id = new_job_id()
    held_jobs[job_id] = (1, None)
    run, fenced = running(held_jobs)
    assert held_jobs.held() == {(job_id, 1), fenced}
    assert held_jobs.runs() == [run]


def test_a_run_that_lost_its_job_is_told(held_jobs, told):
    run, fenced = running(held_jobs)
    held_jobs.abandon(fenced)
    assert (run.state.abandoned, told) == (True, ["job.abandoned"])


def test_a_later_run_of_the_same_job_is_not_meant(held_jobs):
    run, (job_id, fence) = running(held_jobs)
    held_jobs.abandon((job_id, fence - 1))
    held_jobs.ask_to_stop((job_id, fence - 1), "typo")
    assert (run.state.abandoned, run.state.cancel_reason) == (False, None)


def test_a_job_that_has_committed_itself_may_go_on(held_jobs, told):
    """Its row is not running any more: it has succeeded."""
    run, fenced = running(held_jobs, committed=True)
    held_jobs.abandon(fenced)
    assert (run.state.abandoned, told) == (False, [])


def test_a_run_is_asked_once(held_jobs, told):
    run, fenced = running(held_jobs)
    held_jobs.ask_to_stop(fenced, "typo")
    held_jobs.ask_to_stop(fenced, "typo")
    assert (run.state.cancel_reason, told) == ("typo", ["job.asked_to_stop"])


def test_a_claim_that_has_not_started_is_asked_when_it_has(held_jobs, told):
    held_jobs[job_id := new_job_id()] = (1, None)
    held_jobs.ask_to_stop((job_id, 1), "typo")
    assert told == []


def test_a_run_is_told_once_that_its_job_is_gone_however_often_the_beat_asks(held_jobs, told):
    run, fenced = running(held_jobs)
    for _ in range(3):
        held_jobs.abandon(fenced)
    assert (run.state.abandoned, told) == (True, ["job.abandoned"])


def test_a_claim_that_has_not_started_has_nobody_to_tell(held_jobs, told):
    """It finds out when it ends: the guard refuses it."""
    held_jobs[job_id := new_job_id()] = (1, None)
    held_jobs.abandon((job_id, 1))
    assert told == []
