"""How many jobs a process claims: never more than it may run."""

import threading

import pytest

from jobqueue.engine.outcomes import Ended
from jobqueue.hints.polling import PollingListener
from jobqueue.runtime.blocking_claim import BlockingClaim
from jobqueue.runtime.claiming import Claimer
from jobqueue.runtime.held_jobs import HeldJobs
from jobqueue.runtime.ledger import Ledger
from jobqueue.runtime.recycling import Recycling
from jobqueue.runtime.slots import AsyncSlots, Outbox, ThreadSlots
from jobqueue.runtime.spec import ChildSpec
from tests.engine.bench import Bench
from tests.engine.tasks import atomic_job, plain_job

SLOTS = 4


@pytest.fixture
def threads():
    """Slots that take nothing by themselves: the test says when they are free."""
    return ThreadSlots(SLOTS, Ledger.create(100), Outbox(threading.Event()), lambda claim: None)


@pytest.fixture
def coroutines():
    outbox = Outbox(threading.Event())
    slots = AsyncSlots(SLOTS, Ledger.create(100), outbox, lambda claim: None)
    slots.start()
    yield slots
    slots.stop(60.0)


@pytest.fixture
def make_claimer(bench: Bench, threads, coroutines):
    """Makes what claims for the bench's worker, in a process that may run `max_jobs`."""

    def make(max_jobs: int | None) -> Claimer:
        spec = ChildSpec(
            identity=bench.identity.hex, supervisor="", name="", backend="default",
            queues=("default",), threads=SLOTS, direct=False, control_fd=0, ledger_fd=0,
            ledger_capacity=100, log_format="", log_level="", max_jobs=max_jobs,
        )  # fmt: skip
        return Claimer(
            spec,
            bench.environment.options,
            {task.module_path: task for task in (atomic_job, plain_job)},
            threads,
            coroutines,
            HeldJobs(lambda: None),
            Recycling(max_jobs),
            BlockingClaim(bench.environment, "default", lambda: None, lambda: True),
        )

    return make


def test_those_refused_do_not_count_on_top_of_what_a_process_may_run(
    bench: Bench, threads, make_claimer
):
    listener = PollingListener(["default"])
    claimer = make_claimer(max_jobs=SLOTS + 2)
    seen = bench.claim_one(lambda context: None, plain_job)
    claimer.have_ended(bench.storage, [(Ended(seen, 0.0, 0.0, committed=True), None)])
    for _ in range(20):
        bench.enqueue(lambda context: None, atomic_job)
    taken = claimer.claim(bench.storage, listener)  # of a task not yet seen: what is free, not more
    assert taken == SLOTS
    threads.take_back()  # a slot each
    taken += claimer.claim(bench.storage, listener)
    assert taken == SLOTS + 2
