"""The beat: renews while the process lives, reconciles what is held, and knows when it is dead."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from jobqueue.events import subscribe
from jobqueue.ids import lock_key
from jobqueue.models import Worker
from jobqueue.runtime import heartbeat as heartbeat_module
from jobqueue.runtime.heartbeat import Heartbeat
from tests.engine.bench import Bench, Ran, leave
from tests.engine.cutting import session_pid, terminate
from tests.engine.tasks import plain_job
from tests.waiting import wait_until

POSTGRES = pytest.mark.postgres_only("on SQLite the life lock is a file's")


class Hands:
    """What a worker holds, as its beat asks for it."""

    def __init__(self) -> None:
        self.holding: set = set()
        self.abandoned: list = []
        self.asked: list = []
        self.drained = 0

    def held(self) -> set:
        return set(self.holding)

    def abandon(self, fenced) -> None:
        self.abandoned.append(fenced)

    def ask_to_stop(self, fenced, reason) -> None:
        self.asked.append((fenced, reason))

    def drain(self) -> None:
        self.drained += 1


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def lost() -> list[str]:
    """Why the worker was told that it is dead."""
    return []


@pytest.fixture
def beat(bench: Bench, hands: Hands, lost):
    """A beat that is driven by hand; a lost worker does not exit."""
    bench.environment.options = replace(bench.environment.options, self_exit=False)
    heartbeat = Heartbeat(bench.environment, hands, lost.append)
    yield heartbeat
    heartbeat.close()


@pytest.fixture
def events():
    found = []
    stop = subscribe(lambda event: found.append(event.name))
    yield found
    stop()


def running(bench: Bench):
    claim = bench.claim_one(leave, plain_job)
    return claim, (claim.id, claim.fence)


# --- lease ----------------------------------------


def test_a_beat_hears_that_the_worker_is_to_drain_and_says_it_once(beat: Heartbeat, hands, events):
    beat._beat()
    assert hands.drained == 0
    Worker.objects.update(draining=True)
    beat._beat()
    beat._beat()
    assert hands.drained == 1
    assert events.count("process.draining") == 1


def test_a_beat_renews_the_lease(bench: Bench, beat: Heartbeat):
    past = timezone.now() - timedelta(hours=1)
    Worker.objects.filter(pk=bench.identity).update(lease_until=past, heartbeat_at=past)
    beat._beat()
    row = Worker.objects.get(pk=bench.identity)
    assert row.lease_until > timezone.now()
    assert row.heartbeat_at > past


def test_a_worker_whose_row_says_dead_is_told_and_renews_nothing(
    bench: Bench, beat: Heartbeat, lost
):
    bench.storage.mark_dead(bench.identity, "by somebody")
    before = Worker.objects.filter(pk=bench.identity).values().get()
    beat._beat()
    beat._beat()
    assert lost == ["its row says dead"]
    assert Worker.objects.filter(pk=bench.identity).values().get() == before


def test_a_worker_without_a_row_is_dead(bench: Bench, beat: Heartbeat, lost):
    Worker.objects.filter(pk=bench.identity).delete()
    beat._beat()
    assert lost == ["its row says dead"]


# --- reconcile ----------------------------------------


def test_a_row_that_nobody_holds_is_given_back_at_the_second_look(
    bench: Bench, beat: Heartbeat, events
):
    """A claim whose answer was lost: it would run for ever under a live worker."""
    claim, _ = running(bench)
    beat._beat()
    assert Ran(claim.id).state == "running"
    beat._beat()
    ran = Ran(claim.id)
    assert (ran.state, ran.job.attempts, ran.job.suspicions) == ("ready", 0, 0)
    assert events == ["claims.released"]


def test_a_request_to_cancel_is_seen_by_the_next_beat(bench: Bench, beat: Heartbeat, hands: Hands):
    claim, fenced = running(bench)
    hands.holding.add(fenced)
    beat._beat()
    bench.storage.ask_to_cancel([claim.id], "typo")
    beat._beat()
    assert hands.asked == [(fenced, "typo")]


def test_a_row_that_is_held_by_the_second_look_stays(bench: Bench, beat: Heartbeat, hands: Hands):
    """The claim's answer was on its way at the first."""
    claim, fenced = running(bench)
    beat._beat()
    hands.holding.add(fenced)
    beat._beat()
    beat._beat()
    assert Ran(claim.id).state == "running"
    assert hands.abandoned == []


def test_an_end_just_written_is_no_lost_claim(bench: Bench, beat: Heartbeat, hands: Hands):
    claim, fenced = running(bench)
    hands.holding.add(fenced)
    beat._beat()
    bench.flush(bench.execute(claim, plain_job))
    hands.holding.clear()
    beat._beat()
    beat._beat()
    assert Ran(claim.id).state == "succeeded"
    assert hands.abandoned == []


def test_each_lost_claim_has_its_own_two_looks(bench: Bench, beat: Heartbeat):
    first, _ = running(bench)
    beat._beat()
    second, _ = running(bench)
    beat._beat()
    assert (Ran(first.id).state, Ran(second.id).state) == ("ready", "running")
    beat._beat()
    assert Ran(second.id).state == "ready"


def test_a_held_job_whose_row_is_gone_is_abandoned_at_the_second_look(
    bench: Bench, beat: Heartbeat, hands: Hands
):
    claim, fenced = running(bench)
    hands.holding.add(fenced)
    beat._beat()
    bench.take_away(claim)
    beat._beat()
    assert hands.abandoned == []
    beat._beat()
    assert hands.abandoned == [fenced]


def test_a_job_let_go_between_the_looks_is_not_abandoned(
    bench: Bench, beat: Heartbeat, hands: Hands
):
    claim, fenced = running(bench)
    hands.holding.add(fenced)
    bench.take_away(claim)
    beat._beat()
    hands.holding.clear()
    beat._beat()
    assert hands.abandoned == []


def test_a_job_held_at_an_older_fence_is_abandoned_and_its_row_given_back(
    bench: Bench, beat: Heartbeat, hands: Hands
):
    """Claimed again by the same worker, and that answer was lost, too."""
    claim, fenced = running(bench)
    hands.holding.add(fenced)
    bench.reap(claim)
    (again,) = bench.claim(plain_job)
    assert again.fence == claim.fence + 1
    beat._beat()
    beat._beat()
    assert hands.abandoned == [fenced]
    assert Ran(claim.id).state == "ready"


# --- the life lock ----------------------------------------


def is_locked(bench: Bench) -> bool:
    return lock_key(bench.identity) in bench.storage.life_locks()


def test_the_life_lock_is_held_from_before_the_first_beat_until_the_end(
    bench: Bench, beat: Heartbeat
):
    beat.hold_life_lock()
    assert is_locked(bench)
    beat._beat()
    assert is_locked(bench)


@POSTGRES
def test_the_life_lock_goes_with_the_beats_session(bench: Bench, beat: Heartbeat):
    beat.hold_life_lock()
    assert is_locked(bench)
    beat.close()
    wait_until(lambda: not is_locked(bench), "the end of the beat's session")


@POSTGRES
def test_a_beat_that_lost_its_session_holds_the_lock_again_and_ends_the_old_one(
    bench: Bench, beat: Heartbeat, admin, events
):
    beat.hold_life_lock()
    terminate(admin, session_pid(beat._connection))
    assert not is_locked(bench)
    with pytest.raises(Exception, match=r"terminat|closed"):
        beat._beat()
    beat._failed(OSError("what the beat raised"))
    assert is_locked(bench)
    beat._beat()
    beat._recovered()
    assert events == ["heartbeat.failing", "heartbeat.recovered"]


def test_a_beat_without_a_turn_of_the_loop_is_not_sent(bench: Bench, beat: Heartbeat):
    """A process whose loop hangs must look dead."""
    beat.loop_turned()
    assert beat._loop_turned
    beat._loop_turned = False
    assert beat._has_turned


@POSTGRES
def test_a_worker_without_a_renewal_for_a_lease_knows_that_it_is_dead(
    bench: Bench, beat: Heartbeat, lost, monkeypatch
):
    """By a clock that also runs while the machine sleeps, counted from when the beat was sent."""
    beat._beat()
    sent = heartbeat_module.boot_seconds()
    lease = bench.environment.options.lease_seconds
    monkeypatch.setattr(heartbeat_module, "boot_seconds", lambda: sent + lease + 1.0)
    beat._watch_forever()
    assert len(lost) == 1
    assert lost[0].startswith("no renewal for")


def test_a_beat_in_its_threads_renews_and_ends(bench: Bench, beat: Heartbeat):
    past = timezone.now() - timedelta(hours=1)
    Worker.objects.filter(pk=bench.identity).update(lease_until=past)
    beat.hold_life_lock()
    beat.start()
    wait_until(
        lambda: Worker.objects.get(pk=bench.identity).lease_until > timezone.now(), "a renewal"
    )
    beat.close()
    assert not any(thread.is_alive() for thread in beat._threads)
