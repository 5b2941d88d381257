"""The slots: whatever a job does to its thread or its loop, its end arrives and others run on."""

import asyncio
import sys
import threading
from contextvars import ContextVar

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from jobqueue.engine.runs import prepare
from jobqueue.ids import new_job_id
from jobqueue.runtime import slots as slots_module
from jobqueue.runtime.ledger import Ledger
from jobqueue.runtime.slots import AsyncSlots, Outbox, ThreadSlots
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.engine.test_isolation import OPEN, unheard
from tests.runtime.clock import Clock
from tests.runtime.test_prefetch import claim as make_claim

__all__ = ["unheard"]

PATIENCE = 60.0

seen_by: ContextVar[str] = ContextVar("seen_by", default="nobody")


class Pool:
    """One kind of slots with their outbox and ledger."""

    def __init__(self, bench: Bench, kind, task, count: int) -> None:
        self.bench, self.task = bench, task
        self.wake = threading.Event()
        self.outbox = Outbox(self.wake)
        self.ledger = Ledger.create(100)
        self.slots = kind(count, self.ledger, self.outbox, self.make)

    def make(self, claim):
        return prepare(claim, self.task, self.bench.environment, self.bench.middleware)

    def run(self, *bodies) -> list[Ran]:
        """Run a job of each body; flush their ends as they come; return the jobs in order."""
        ids = [self.bench.enqueue(body, self.task) for body in bodies]
        for claim in self.bench.claim(self.task, limit=len(bodies)):
            self.slots.put(claim)
        self.flush(len(bodies))
        return [Ran(each) for each in ids]

    def run_one(self, body) -> Ran:
        """Run a job, whatever is left of others."""
        claim = self.bench.claim_one(body, self.task)
        self.slots.put(claim)
        self.flush(1)
        return Ran(claim.id)

    def flush(self, count: int) -> None:
        while count:
            self.wake.clear()
            for ended, entry in self.outbox.take(count):
                self.bench.flush(ended)
                self.ledger.clear(entry)
                count -= 1
            if count:
                assert self.wake.wait(PATIENCE), "a job's end never arrived"


@pytest.fixture
def pool(bench: Bench):
    """Starts slots of a kind."""
    made: list[Pool] = []

    def start(task, count: int = 2) -> Pool:
        kind = AsyncSlots if task is async_job else ThreadSlots
        made.append(Pool(bench, kind, task, count))
        made[-1].slots.start()
        return made[-1]

    yield start
    for each in made:
        each.slots.stop(PATIENCE)
        each.ledger.close()


class Unordinary(BaseException):
    pass


def raising(error):
    def body(context):
        raise error

    return body


def exits(context):
    sys.exit(0)


ABNORMAL = [
    exits,
    raising(KeyboardInterrupt()),
    raising(GeneratorExit()),
    raising(asyncio.CancelledError()),
    raising(Unordinary()),
]


# --- threads ----------------------------------------


@pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "not atomic"])
def test_abnormal_ends_of_jobs_leave_the_threads_to_twenty_others(pool, task):
    jobs = pool(task).run(*ABNORMAL, *[leave] * 20)
    assert [job.state for job in jobs] == ["retrying"] * 5 + ["succeeded"] * 20
    assert [job.effects for job in jobs[5:]] == [["done"]] * 20


@pytest.mark.parametrize("left_open", OPEN, ids=lambda f: f.__name__)
def test_what_a_job_leaves_open_is_gone_before_the_next_in_its_thread(bench, pool, left_open):
    """The fetch loop's thread cannot clean up for it: each thread has connections of its own."""

    def raising_after(context):
        left_open(context)
        raise ValueError

    slots = pool(plain_job, count=1)
    states = [job.state for job in slots.run(left_open, leave, raising_after, leave)]
    assert states == ["retrying", "succeeded", "retrying", "succeeded"]


def test_what_waits_can_be_taken_back_and_what_runs_cannot(bench: Bench, pool):
    started, go_on = threading.Event(), threading.Event()

    def holding(context):
        started.set()
        assert go_on.wait(PATIENCE)

    slots = pool(plain_job, count=1)
    for body in (holding, leave, leave):
        bench.enqueue(body, plain_job)
    claims = bench.claim(plain_job, limit=3)
    for claim in claims:
        slots.slots.put(claim)
    assert started.wait(PATIENCE)
    counts = slots.slots.running, slots.slots.waiting
    young, old = slots.slots.take_back(older_than=3_600.0), slots.slots.take_back()
    held = slots.ledger.started()
    go_on.set()
    slots.flush(1)
    assert counts == (1, 2)
    assert (young, old) == ([], claims[1:])
    assert held == {(claims[0].id, claims[0].fence)}
    assert slots.ledger.started() == set()


def test_looking_for_what_waits_too_long_does_not_change_the_order(bench: Bench, pool):
    """The fetch loop looks at every turn; the most urgent job stays the next to start."""
    order, go_on = [], threading.Event()

    def body(context):
        assert go_on.wait(PATIENCE)
        order.append(context.job_id)

    slots = pool(plain_job, count=1)
    for _ in range(4):
        bench.enqueue(body, plain_job)
    claims = bench.claim(plain_job, limit=4)
    for claim in claims:
        slots.slots.put(claim)
        assert slots.slots.take_back(older_than=3_600.0) == []
    go_on.set()
    slots.flush(4)
    assert order == [claim.id for claim in claims]


def test_a_claim_that_is_put_first_starts_before_those_that_wait(bench: Bench, pool):
    order, started, go_on = [], threading.Event(), threading.Event()

    def body(context):
        started.set()
        assert go_on.wait(PATIENCE)
        order.append(context.job_id)

    slots = pool(plain_job, count=1)
    for _ in range(5):
        bench.enqueue(body, plain_job)
    running, *claims = bench.claim(plain_job, limit=5)
    slots.slots.put(running)
    assert started.wait(PATIENCE)
    for claim in claims:
        slots.slots.put(claim, is_first=claim in claims[2:])
    assert (slots.slots.waiting, slots.slots.waiting_first) == (4, 2)
    go_on.set()
    slots.flush(5)
    assert order == [claim.id for claim in (running, *claims[2:], *claims[:2])]


def test_what_was_put_first_is_taken_back_like_all_others(bench: Bench, pool):
    slots = ThreadSlots(1, pool(plain_job).ledger, Outbox(threading.Event()), None)
    claims = [make_claim() for _ in range(4)]
    for claim in claims:
        slots.put(claim, is_first=claim in claims[2:])
    assert slots.take_back(older_than=3_600.0) == []
    assert slots.take_back() == [*claims[2:], *claims[:2]]
    assert (slots.waiting, slots.waiting_first, slots.take_back()) == (0, 0, [])


def test_a_row_that_cannot_be_decoded_does_not_stop_its_thread(bench: Bench, pool):
    slots = pool(plain_job, count=1)
    broken = bench.claim_one(leave, plain_job)._replace(arguments="{")
    slots.slots.put(broken)
    slots.flush(1)
    assert Ran(broken.id).state == "dead"
    assert slots.run(leave)[0].effects == ["done"]


BROKEN = [SystemExit(1), RuntimeError("in our own code")]


@pytest.mark.parametrize("error", BROKEN, ids=repr)
def test_a_run_that_breaks_in_our_own_hands_fails_and_keeps_its_thread(
    bench: Bench, pool, monkeypatch, error
):
    slots = pool(plain_job, count=1)
    with monkeypatch.context() as patch:
        patch.setattr(slots_module, "run_sync", raising(error))
        (job,) = slots.run(leave)
    assert (job.state, job.attempt.outcome) == ("retrying", "failed")
    assert slots.run(leave)[0].effects == ["done"]


@pytest.mark.parametrize("task", [plain_job, async_job], ids=["thread", "loop"])
def test_a_ledger_without_room_fails_a_job_and_keeps_its_slot(bench: Bench, pool, task):
    slots = pool(task, count=1)
    entries = [slots.ledger.start(new_job_id(), 1, 60.0) for _ in range(slots.ledger.capacity)]
    (job,) = slots.run(leave)
    assert (job.state, job.attempt.error_class) == ("retrying", "builtins.IndexError")
    slots.ledger.clear(entries[0])
    assert slots.run(write if task is async_job else leave)[0].effects == ["done"]


# --- the event loop ----------------------------------------


def as_coroutine(body):
    async def run(context):
        await asyncio.sleep(0)
        body(context)

    return run


async def write(context):
    await sync_to_async(leave)(context)


def test_abnormal_ends_of_jobs_leave_the_loop_to_twenty_others(pool):
    jobs = pool(async_job).run(*[as_coroutine(body) for body in ABNORMAL], *[write] * 20)
    assert [job.state for job in jobs] == ["retrying"] * 5 + ["succeeded"] * 20
    assert [job.effects for job in jobs[5:]] == [["done"]] * 20


async def exit_in_a_task_of_its_own(context):
    await asyncio.gather(as_coroutine(exits)(context))


async def interrupt_in_a_callback(context):
    asyncio.get_running_loop().call_soon(raising(KeyboardInterrupt()), context)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def stop_the_loop(context):
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("body", "state"),
    [
        (exit_in_a_task_of_its_own, "retrying"),
        (interrupt_in_a_callback, "succeeded"),
        (stop_the_loop, "succeeded"),
    ],
)
def test_what_ends_an_event_loop_does_not_end_this_one(pool, body, state):
    jobs = pool(async_job).run(body, *[write] * 5)
    assert [job.state for job in jobs] == [state] + ["succeeded"] * 5


@pytest.mark.parametrize("error", BROKEN, ids=repr)
def test_a_coroutine_that_breaks_in_our_own_hands_fails_and_leaves_the_loop(
    pool, monkeypatch, error
):
    slots = pool(async_job)
    with monkeypatch.context() as patch:
        patch.setattr(slots_module, "run_async", raising(error))
        (job,) = slots.run(write)
    assert (job.state, job.attempt.outcome) == ("retrying", "failed")
    assert slots.run(write)[0].effects == ["done"]


async def cancel_itself_and_return(context):
    asyncio.current_task().cancel()
    return "returned"


async def cancel_itself_and_wait(context):
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


async def cancel_itself_after_writing(context):
    await sync_to_async(leave)(context)
    asyncio.current_task().cancel()


@pytest.mark.parametrize(
    "body", [cancel_itself_and_return, cancel_itself_and_wait, cancel_itself_after_writing]
)
def test_the_end_of_a_job_that_cancels_itself_arrives(pool, body):
    slots = pool(async_job)
    (job,) = slots.run(body)
    assert job.state in ("succeeded", "retrying")
    assert slots.run(write)[0].effects == ["done"]


def test_a_job_that_cancels_every_task_of_the_loop_strands_none(bench: Bench, pool):
    """Those that had not begun have an end without a result: the beat gives their rows back."""

    async def cancel_all(context):
        for task in asyncio.all_tasks():
            task.cancel()

    slots = pool(async_job)
    jobs = slots.run(cancel_all, *[write] * 10)
    assert {job.state for job in jobs} <= {"succeeded", "retrying", "running"}
    assert slots.ledger.started() == set()
    assert slots.run_one(write).effects == ["done"]


def test_jobs_do_not_see_each_others_context(pool):
    async def body(context):
        before = seen_by.get()
        seen_by.set(str(context.job_id))
        return before

    jobs = pool(async_job).run(body, body, body)
    assert [job.job.result for job in jobs] == ["nobody"] * 3


def test_jobs_of_the_loop_run_at_the_same_time(pool):
    met = []

    async def body(context):
        met.append(1)
        async with asyncio.timeout(PATIENCE):
            while len(met) < 3:
                await asyncio.sleep(0)

    assert {job.state for job in pool(async_job).run(body, body, body)} == {"succeeded"}


def test_connections_of_a_job_are_closed_with_it(pool):
    opened = []

    def write_and_remember(context):
        leave(context)
        opened.append(connections["default"])

    async def body(context):
        await sync_to_async(write_and_remember)(context)

    jobs = pool(async_job).run(*[body] * 5)
    assert {job.state for job in jobs} == {"succeeded"}
    assert [wrapper.connection for wrapper in opened] == [None] * 5


def test_a_coroutine_that_catches_its_cancellation_and_goes_on_succeeds(pool):
    async def body(context):
        asyncio.current_task().cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()
        return "went on"

    (job,) = pool(async_job).run(body)
    assert (job.state, job.job.result) == ("succeeded", "went on")


# --- outbox ----------------------------------------


def test_ends_come_out_in_order_and_go_back_to_the_front():
    outbox = Outbox(threading.Event())
    ends = [(make_claim(str(new_job_id())), n) for n in range(5)]
    for end in ends:
        outbox.put(end)
    taken = outbox.take(3)
    assert taken == ends[:3]
    outbox.put_back(taken)
    assert len(outbox) == 5
    assert outbox.take(10) == ends
    assert outbox.take(10) == []


def test_ends_that_were_put_off_come_again_after_growing_pauses(monkeypatch):
    monkeypatch.setattr(slots_module, "time", clock := Clock())
    outbox = Outbox(threading.Event())
    end = make_claim(str(new_job_id())), 1
    pauses = []
    for _ in range(8):
        before = clock.now
        outbox.put_off([end])
        assert (len(outbox), outbox.take(10)) == (0, [])
        while not outbox.take(10):
            outbox.put_off([])  # others are written meanwhile
            clock.advance(0.05)
        pauses.append(clock.now - before)
    assert pauses == sorted(pauses)
    assert pauses[0] < 0.2
    assert 5.0 <= pauses[-1] < 5.1
    outbox.put_off([])
    outbox.put_off([end])
    clock.advance(0.1)
    assert outbox.take(10) == [end]
