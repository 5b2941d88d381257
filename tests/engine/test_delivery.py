"""Signals of a process that keeps time: sent in order, by a thread that holds nobody up."""

import sys
import threading

import pytest

from jobqueue import compat, signals
from jobqueue.engine import delivery
from jobqueue.engine.recovery import Death, recover
from jobqueue.exceptions import GiveUp
from jobqueue.models import Job
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import plain_job
from tests.engine.test_signals import heard
from tests.runtime.clock import Clock
from tests.storage.making import register
from tests.waiting import wait_until

PATIENCE = 60.0


@pytest.fixture
def thread():
    """The thread of a process that has one."""
    yield delivery.begin()
    delivery.end(PATIENCE)


class Hanging:
    """A receiver that waits for a mail server that never answers, until it is released."""

    def __init__(self) -> None:
        self.entered, self.released = threading.Event(), threading.Event()
        self.told = []

    def __call__(self, sender, task_result=None, job_id=None, **kwargs):
        self.entered.set()
        assert self.released.wait(PATIENCE)
        self.told.append(job_id or task_result.id)


@pytest.fixture
def hanging():
    receiver = Hanging()
    with heard(compat.task_finished, receiver), heard(signals.job_died, receiver):
        yield receiver
        receiver.released.set()


def give_up(context):
    raise GiveUp


@pytest.mark.parametrize(("body", "state"), [(leave, "succeeded"), (give_up, "dead")])
def test_a_receiver_that_hangs_does_not_hold_up_the_fetch_loop(
    bench: Bench, thread, hanging, body, state
):
    first = bench.run(body, plain_job)
    assert hanging.entered.wait(PATIENCE)
    others = [bench.run(leave, plain_job) for _ in range(3)]
    assert [job.state for job in (first, *others)] == [state] + ["succeeded"] * 3
    assert (hanging.told, thread.is_idle) == ([], False)
    hanging.released.set()
    delivery.end(PATIENCE)
    assert thread.is_idle
    assert [str(each) for each in hanging.told][-3:] == [str(job.id) for job in others]


def test_a_receiver_that_hangs_does_not_hold_up_a_recovery(bench: Bench, thread, hanging):
    workers = [register(bench.storage) for _ in range(2)]
    claims = []
    for worker in workers:
        bench.enqueue(leave, plain_job)
        names = [plain_job.module_path]
        claims += bench.storage.claim_many(worker, [plain_job.queue_name], names, 1)
    Job.objects.update(on_crash="bury")
    for worker in workers:
        recover(bench.storage, Death(worker, "killed"), bench.environment.options)
    assert [Ran(claim.id).state for claim in claims] == ["dead", "dead"]
    assert hanging.told == []
    hanging.released.set()
    delivery.end(PATIENCE)
    assert {str(each) for each in hanging.told} == {str(claim.id) for claim in claims}


def test_a_receiver_that_exits_ends_neither_the_thread_nor_the_order(bench: Bench, thread):
    told = []

    def receiver(sender, task_result, **kwargs):
        told.append(task_result.id)
        sys.exit(1)

    with heard(compat.task_finished, receiver):
        ran = [bench.run(leave, plain_job) for _ in range(3)]
        delivery.end(PATIENCE)
    assert told == [str(job.id) for job in ran]


def test_without_a_thread_signals_are_sent_at_once(bench: Bench):
    told = []
    with heard(compat.task_finished, lambda task_result, **kwargs: told.append(task_result.id)):
        ran = bench.run(leave, plain_job)
        assert told == [str(ran.id)]


# --- falling behind ----------------------------------------


def test_a_worker_gives_slow_receivers_time_and_hanging_ones_none(thread, monkeypatch):
    monkeypatch.setattr(delivery, "time", clock := Clock())
    monkeypatch.setattr(delivery, "BEHIND", 3)
    entered, go_on = threading.Event(), threading.Event()

    def slow():
        entered.set()
        assert go_on.wait(PATIENCE)

    thread.put(slow)
    assert entered.wait(PATIENCE)
    assert not thread.is_behind
    for _ in range(3):
        thread.put(lambda: None)
    assert thread.is_behind
    clock.advance(delivery.HANGING_SECONDS + 1)
    assert not thread.is_behind
    go_on.set()
    wait_until(lambda: thread.is_idle, "the thread to catch up")
    assert not thread.is_behind


def test_what_no_longer_fits_is_dropped_and_told_once(thread, monkeypatch, events):
    monkeypatch.setattr(delivery, "MAX_WAITING", 3)
    entered, go_on, sent = threading.Event(), threading.Event(), []

    def slow():
        entered.set()
        assert go_on.wait(PATIENCE)

    thread.put(slow)
    assert entered.wait(PATIENCE)
    for number in range(6):
        thread.put(lambda number=number: sent.append(number))
    go_on.set()
    wait_until(lambda: thread.is_idle, "the thread to catch up")
    assert sent == [3, 4, 5]
    delivery.end(PATIENCE)
    dropped = [(e.name, e.facts.get("count")) for e in events if e.name.startswith("signals.")]
    assert dropped == [("signals.dropping", None), ("signals.dropped", 3)]
