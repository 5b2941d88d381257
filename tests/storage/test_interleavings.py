"""Whatever two workers, a reaper and an operator do, and in whatever order: the promise holds.

A model beside the database says who owns each job. After every move each write was accepted if
and only if the model's owner made it, at most one attempt of a job succeeded, attempts are
numbered 1…n, fences strictly grow, and every change of state is one that `jobqueue.states` allows.

The moves are drawn as numbers of a fixed count: Hypothesis's own state machines leave rules out
and stop early, so that few claims ever compete.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobqueue.engine.audit import audit
from jobqueue.exceptions import LeaseLost
from jobqueue.models import Attempt, Job, Step, Worker
from jobqueue.states import LIVE, State, is_allowed
from jobqueue.storage import Storage
from jobqueue.storage.records import Claim, Success
from tests.storage.making import AGING_SECONDS, QUEUE, TASK, claim, ending, insert, register

FAR = datetime(2090, 1, 1, tzinfo=UTC)
MOVES_A_RUN = 50
BUDGET = settings(
    max_examples=20,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

WAYS_OUT: list[dict[str, Any]] = [
    {"state": "ready"},
    {"state": "retrying", "outcome": "failed", "charged": True, "delay": 1.0},
    {"state": "retrying", "outcome": "timed_out", "charged": True, "delay": 0.0},
    {"state": "scheduled", "outcome": "snoozed", "delay": 60.0},
    {"state": "ready", "outcome": "lost", "suspicion": 1, "alone": True},
    {"state": "dead", "outcome": "failed", "charged": True, "reason": "gave up"},
    {"state": "cancelled", "outcome": "cancelled"},
]


class Fleet:
    """Two workers and an operator, each on a connection of its own, and the model of the truth.

    Moves take a number and make of it what they need. Few jobs, so that they are fought over.
    """

    def __init__(self, storages: list[Storage]) -> None:
        for model in (Attempt, Step, Job, Worker):
            model.objects.all().delete()
        self.storages = storages
        self.operator = storages[-1]
        self.workers = [register(storage) for storage in storages[:2]]
        self.claims: list[Claim] = []  # every claim ever made, of the living and the dead
        self.owner: dict[UUID, tuple[UUID, int]] = {}
        self.seen: dict[UUID, str | None] = {}
        self.enqueue(0)
        self.enqueue(0)

    def is_owner(self, held: Claim) -> bool:
        return self.owner.get(held.id) == (held.worker, held.fence)

    def owned(self) -> list[Claim]:
        return list({held.id: held for held in self.claims if self.is_owner(held)}.values())

    def recent(self, n: int, count: int = 1) -> list[Claim]:
        """Return some of the newest claims: the stale ones of a moment ago do the harm."""
        start = n % 6
        return list(reversed(self.claims))[start : start + count]

    def move(self, number: int) -> None:
        n, which = divmod(number, len(MOVES))
        MOVES[which](self, n)
        self.check()

    # --- the queue and its workers --------------------------------------------------------------

    def enqueue(self, n: int) -> None:
        if sum(state in LIVE for state in self.seen.values()) < 2:
            delay = 60.0 if n % 4 == 3 else None
            insert(self.operator, priority=n % 3, delay=delay, max_attempts=None)
            self.check_transitions()

    def claim(self, n: int) -> None:
        storage, worker = self.storages[n % 2], self.workers[n % 2]
        claims = claim(storage, worker, 3) or storage.claim_alone(worker, [QUEUE], [TASK])
        for held in claims:
            assert held.id not in self.owner
            assert held.worker == worker
            self.owner[held.id] = (held.worker, held.fence)
        self.claims += claims

    def finish(self, n: int) -> None:
        for held in self.recent(n):
            try:
                self.storages[n % 3].finish_one(held, "null", 1.0)
            except LeaseLost:
                assert not self.is_owner(held)
            else:
                assert self.is_owner(held)
                del self.owner[held.id]

    def finish_batch(self, n: int) -> None:
        for worker in {held.worker for held in self.recent(n)}:
            batch = {held.id: held for held in self.recent(n, 3) if held.worker == worker}
            successes = [Success(held.id, held.fence, "null", 1.0, 0.5) for held in batch.values()]
            reported = self.operator.finish_many(worker, successes)
            self.check_reported(list(batch.values()), reported)

    def end(self, n: int) -> None:
        batch = {held.id: held for held in self.recent(n, 1 + n % 2)}
        endings = [ending(held, **WAYS_OUT[n % len(WAYS_OUT)]) for held in batch.values()]
        reported = self.operator.end_many(endings)
        self.check_reported(list(batch.values()), reported)

    def check_reported(self, batch: list[Claim], reported: list[tuple[UUID, int]]) -> None:
        assert {job_id for job_id, _ in reported} == {
            held.id for held in batch if not self.is_owner(held)
        }
        for held in batch:
            if self.is_owner(held):
                del self.owner[held.id]

    def release_and_claim_again(self, n: int) -> None:
        """Leave claims that look alike: often of the same worker, only the fence tells."""
        assert self.operator.end_many([ending(held, "ready") for held in self.owned()]) == []
        self.owner.clear()
        self.check_transitions()
        self.claim(n)

    def use_claims(self, n: int) -> None:
        for held in self.recent(0, 6):
            assert self.operator.verdict(held).still_ours == self.is_owner(held)
            try:
                self.storages[n % 3].record_step(held, f"step {n % 5}", "1")
            except LeaseLost:
                assert not self.is_owner(held)
            else:
                assert self.is_owner(held)

    # --- death and failover ---------------------------------------------------------------------

    def reap(self, n: int) -> None:
        """Declare a worker dead, and take its jobs back in later statements."""
        worker = self.workers[n % 2]
        assert self.operator.mark_dead(worker, "test") is True
        assert claim(self.storages[n % 2], worker) == []
        lost = self.operator.running_of([worker])
        assert {held.id for held in lost} == {
            job_id for job_id, (owner, _) in self.owner.items() if owner == worker
        }
        endings = [ending(held, "ready", outcome="lost", suspicion=1) for held in lost]
        assert self.operator.end_many(endings) == []
        for held in lost:
            del self.owner[held.id]
        assert worker not in self.operator.orphan_workers()
        self.workers[n % 2] = register(self.storages[n % 2])

    def fail_over(self, n: int) -> None:
        """Lose the last claim with the primary: its fence is handed out again, to another."""
        other = self.workers[n % 2]
        for lost in self.owned()[:1]:
            Job.objects.filter(pk=lost.id).update(worker=other)
            self.owner[lost.id] = (other, lost.fence)
            self.claims.append(lost._replace(worker=other))

    # --- sweeps and operators -------------------------------------------------------------------

    def promote(self, n: int) -> None:
        self.operator.promote(3, now=FAR)

    def park_and_admit(self, n: int) -> None:
        self.operator.park_unknown([], 2)
        self.check_transitions()
        self.operator.admit_known([TASK], 1 + n % 2)

    def force_cancel(self, n: int) -> None:
        for held in self.recent(n):
            cancelled = self.operator.force_cancel(held.id, held.fence, held.worker, "operator")
            assert cancelled == self.is_owner(held)
            if cancelled:
                del self.owner[held.id]

    def operate(self, n: int) -> None:
        ids = list(self.seen)[-3:]
        if n % 4 == 0:
            self.operator.cancel_waiting(ids, "operator")
        elif n % 4 == 1:
            self.operator.discard_dead(ids, "operator")
        else:
            self.operator.requeue_many(ids, AGING_SECONDS)

    # --- what must hold -------------------------------------------------------------------------

    def check(self) -> None:
        self.check_transitions()
        running = Job.objects.filter(state="running").values_list("id", "worker", "fence")
        assert {job_id: (worker, fence) for job_id, worker, fence in running} == self.owner
        self.check_history()

    def check_transitions(self) -> None:
        found = dict(Job.objects.values_list("id", "state"))
        for job_id, state in found.items():
            before = self.seen.get(job_id)
            if before != state:
                source = None if before is None else State(before)
                assert is_allowed(source, State(state)), (before, state)
        assert set(self.seen) <= set(found)
        self.seen = dict(found)

    def check_history(self) -> None:
        history: dict[UUID, list[tuple[int, int, str]]] = {job_id: [] for job_id in self.seen}
        facts = Attempt.objects.order_by("number").values_list(
            "job_id", "number", "fence", "outcome"
        )
        for job_id, *fact in facts:
            history[job_id].append(tuple(fact))
        jobs = Job.objects.values_list("id", "state", "attempts", "fence")
        for job_id, state, attempts, last_fence in jobs:
            numbers = [number for number, _, _ in history[job_id]]
            fences = [fence for _, fence, _ in history[job_id]]
            successes = [fact for fact in history[job_id] if fact[2] == "succeeded"]
            assert numbers == list(range(1, attempts + 1))
            assert all(earlier < later for earlier, later in pairwise([*fences, last_fence + 1]))
            assert len(successes) == (state == "succeeded")


MOVES: list[Callable[[Fleet, int], None]] = [
    Fleet.enqueue,
    Fleet.claim,
    Fleet.claim,
    Fleet.finish,
    Fleet.finish_batch,
    Fleet.end,
    Fleet.end,
    Fleet.release_and_claim_again,
    Fleet.use_claims,
    Fleet.reap,
    Fleet.fail_over,
    Fleet.promote,
    Fleet.park_and_admit,
    Fleet.force_cancel,
    Fleet.operate,
]
NUMBERS = st.lists(st.integers(0, len(MOVES) * 840 - 1), min_size=MOVES_A_RUN, max_size=MOVES_A_RUN)


def test_any_interleaving_keeps_the_promise(open_storage: Callable[[], Storage]) -> None:
    storages = [open_storage() for _ in range(3)]

    @BUDGET
    @given(NUMBERS)
    def run(numbers: list[int]) -> None:
        fleet = Fleet(storages)
        for number in numbers:
            fleet.move(number)
        assert audit(fleet.operator) == []

    run()


@pytest.mark.parametrize("way", WAYS_OUT, ids=lambda way: way.get("outcome", "released"))
def test_every_way_out_is_a_transition_of_the_machine(way: dict[str, Any]) -> None:
    assert is_allowed(State.RUNNING, State(way["state"]))
