"""What a worker holds: a run whose job was taken from it is told once."""

from jobqueue.engine.execution import prepare
from jobqueue.events import subscribe
from jobqueue.runtime.holdings import Holdings
from tests.engine.bench import Bench, leave
from tests.engine.tasks import plain_job


def test_a_run_is_told_once_that_its_job_is_gone_however_often_the_beat_asks(bench: Bench):
    claim = bench.claim_one(leave, plain_job)
    run = prepare(claim, plain_job, bench.environment, bench.middleware)
    holdings = Holdings(drain=lambda: None)
    holdings[claim.id] = (claim.fence, None)
    events = []
    stop = subscribe(events.append)
    try:
        holdings.abandon((claim.id, claim.fence))  # it has not started: nobody to tell
        holdings[claim.id] = (claim.fence, run)
        for _ in range(3):
            holdings.abandon((claim.id, claim.fence))
    finally:
        stop()
    assert run.state.abandoned
    assert [event.name for event in events] == ["job.abandoned"]
