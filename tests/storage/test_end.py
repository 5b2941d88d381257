"""Every other way out of running: where the job goes, and what its attempt was."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from jobqueue.ids import new_identity
from jobqueue.models import Attempt
from jobqueue.storage import Storage
from jobqueue.storage.records import Claim
from tests.storage.making import (
    AGING_SECONDS,
    FAILURE,
    attempts,
    claim,
    claimed,
    ending,
    everything,
    insert,
    register,
    row,
    run_sql,
    states,
)
from tests.storage.test_finish import NOT_THE_OWNER, Intrusion, gone, other_worker

NOON = datetime(2030, 6, 1, 12, 0, 0, 250000, tzinfo=UTC)


@pytest.fixture
def held(storage: Storage) -> Claim:
    return claimed(storage, priority=2)


def test_a_retry_waits_its_delay_and_is_charged(storage: Storage, held: Claim) -> None:
    storage.end_many(
        [ending(held, "retrying", outcome="failed", charged=True, delay=20.5, error=FAILURE)],
        now=NOON,
    )
    due = NOON + timedelta(seconds=20.5)
    stored = row(held.id)
    assert (stored.state, stored.attempts, stored.failures) == ("retrying", 1, 1)
    assert (stored.worker, stored.claimed_at, stored.deadline) == (None, None, None)
    assert (stored.run_at, stored.finished_at) == (due, None)
    assert stored.rank == round(due.timestamp() * 1_000_000) - 2 * int(AGING_SECONDS) * 1_000_000
    assert (stored.error_class, stored.error_message) == (FAILURE.class_path, FAILURE.message)
    assert stored.error_fingerprint == FAILURE.fingerprint


def test_an_attempt_row_tells_the_failure(storage: Storage, held: Claim) -> None:
    storage.end_many(
        [
            ending(
                held,
                "retrying",
                outcome="timed_out",
                charged=True,
                delay=1.0,
                error=FAILURE,
                started_ago=3.0,
            )
        ],
        now=NOON,
    )
    (attempt,) = attempts(held.id)
    assert (attempt.number, attempt.fence, attempt.worker) == (1, held.fence, held.worker)
    assert (attempt.outcome, attempt.charged) == ("timed_out", True)
    assert attempt.started_at == NOON - timedelta(seconds=3)
    assert attempt.finished_at == NOON
    assert (attempt.error_class, attempt.error_message) == (FAILURE.class_path, FAILURE.message)
    assert (attempt.traceback, attempt.error_fingerprint) == (
        FAILURE.traceback,
        FAILURE.fingerprint,
    )


def test_an_attempt_whose_start_nobody_knows_began_at_its_claim(
    storage: Storage, held: Claim
) -> None:
    storage.end_many([ending(held, "ready", outcome="lost", suspicion=1)])
    (attempt,) = attempts(held.id)
    assert attempt.started_at == held.claimed_at
    assert (attempt.error_class, attempt.error_message, attempt.traceback) == ("", "", "")


def test_a_release_leaves_no_attempt_and_keeps_its_place(storage: Storage, held: Claim) -> None:
    before = row(held.id)
    storage.end_many([ending(held, "ready")])
    stored = row(held.id)
    assert (stored.state, stored.attempts, stored.failures) == ("ready", 0, 0)
    assert (stored.run_at, stored.rank, stored.fence) == (before.run_at, before.rank, held.fence)
    assert attempts(held.id) == []


def test_a_snooze_is_not_charged(storage: Storage, held: Claim) -> None:
    storage.end_many([ending(held, "scheduled", outcome="snoozed", delay=3_600.0)], now=NOON)
    stored = row(held.id)
    assert (stored.state, stored.attempts, stored.failures) == ("scheduled", 1, 0)
    assert stored.run_at == NOON + timedelta(hours=1)
    assert [a.outcome for a in attempts(held.id)] == ["snoozed"]


@pytest.mark.parametrize(("state", "outcome"), [("dead", "failed"), ("cancelled", "cancelled")])
def test_an_ended_job_has_its_time_and_reason(
    storage: Storage, held: Claim, state: str, outcome: str
) -> None:
    storage.end_many([ending(held, state, outcome=outcome, reason="gave up")], now=NOON)
    stored = row(held.id)
    assert (stored.state, stored.finished_at, stored.reason) == (state, NOON, "gave up")


def test_a_long_reason_is_cut(storage: Storage, held: Claim) -> None:
    storage.end_many([ending(held, "dead", outcome="failed", reason="x" * 200)])
    assert row(held.id).reason == "x" * 64


def test_suspicions_add_up(storage: Storage) -> None:
    worker = register(storage)
    insert(storage)
    seen = []
    for change in ({"suspicion": 1}, {"suspicion": 1, "alone": True}, {}):
        (held,) = claim(storage, worker) or storage.claim_alone(worker, ["default"], ["app.task"])
        storage.end_many([ending(held, "ready", outcome="lost", **change)])
        seen.append((row(held.id).suspicions, row(held.id).alone))
    assert seen == [(1, False), (2, True), (2, False)]


def test_an_ending_without_an_error_keeps_the_last_one(storage: Storage) -> None:
    worker = register(storage)
    first = claimed(storage, worker)
    storage.end_many([ending(first, "ready", outcome="failed", charged=True, error=FAILURE)])
    (second,) = claim(storage, worker)
    storage.end_many([ending(second, "ready", outcome="lost", suspicion=1)])
    assert row(first.id).error_message == FAILURE.message
    assert [(a.number, a.fence) for a in attempts(first.id)] == [(1, 1), (2, 2)]


@pytest.mark.parametrize("intrude", NOT_THE_OWNER)
@pytest.mark.parametrize("state", ["ready", "dead"])
def test_a_zombie_cannot_end_somebody_elses_run(
    storage: Storage, held: Claim, intrude: Intrusion, state: str
) -> None:
    zombie = intrude(storage, held)
    before = everything()
    given = ending(zombie, state, outcome="failed", charged=True, error=FAILURE)
    assert storage.end_many([given]) == [(zombie.id, zombie.fence)]
    assert everything() == before


def test_a_batch_ends_each_its_own_way_and_reports_the_rest(storage: Storage) -> None:
    worker = register(storage)
    insert(storage, 4)
    a, b, c, d = claim(storage, worker)
    lost = other_worker(storage, c)
    gone(storage, d)
    reported = storage.end_many(
        [
            ending(d, "ready"),
            ending(lost, "ready"),
            ending(b, "dead", outcome="failed", charged=True),
            ending(a, "scheduled", outcome="snoozed", delay=5.0),
        ]
    )
    assert sorted(reported) == sorted([(c.id, c.fence), (d.id, d.fence)])
    assert states(a.id, b.id, c.id) == ["scheduled", "dead", "running"]


def test_nothing_to_end_is_nothing(storage: Storage) -> None:
    assert storage.end_many([]) == []


def test_a_reaper_ends_by_the_dead_workers_own_guard(storage: Storage) -> None:
    dead, alive = register(storage), register(storage)
    lost, safe = claimed(storage, dead), claimed(storage, alive)
    storage.mark_dead(dead, "test")
    endings = [
        ending(lost, "ready", outcome="lost", suspicion=1),
        ending(safe._replace(worker=dead), "ready", outcome="lost", suspicion=1),
    ]
    assert storage.end_many(endings) == [(safe.id, safe.fence)]
    assert states(lost.id, safe.id) == ["ready", "running"]


def test_text_of_any_script_and_size_is_kept(storage: Storage, held: Claim) -> None:
    error = FAILURE.__class__("a.B", "ключ 鍵 😀 %s %(x)s ' \" \\", "x" * 32_768, "f" * 32)
    storage.end_many([ending(held, "dead", outcome="failed", charged=True, error=error)])
    (attempt,) = attempts(held.id)
    assert (attempt.error_message, len(attempt.traceback)) == (error.message, 32_768)


@pytest.mark.postgres_only("SQLite has no row locks")
def test_a_reaper_never_waits_for_a_locked_row(storage: Storage) -> None:
    worker = register(storage)
    locked, free = claimed(storage, worker), claimed(storage, worker)
    endings = [ending(each, "ready", outcome="lost") for each in (locked, free)]
    with transaction.atomic():
        lock = "SELECT 1 FROM jobqueue_job WHERE id = %s FOR NO KEY UPDATE"
        run_sql(connection, lock, [locked.id])
        reported = storage.end_many(endings)
    assert reported == [(locked.id, locked.fence)]
    assert states(locked.id, free.id) == ["running", "ready"]
    assert storage.end_many(endings) == [(free.id, free.fence)]


def test_attempts_are_numbered_without_a_gap_whatever_ends_them(storage: Storage) -> None:
    worker = register(storage)
    (job_id,) = insert(storage, max_attempts=None)
    for outcome in ("failed", None, "lost", "snoozed", None, "timed_out"):
        (held,) = claim(storage, worker)
        storage.end_many([ending(held, "ready", outcome=outcome)])
    found = Attempt.objects.filter(job_id=job_id).order_by("number").values_list("number", "fence")
    assert list(found) == [(1, 1), (2, 3), (3, 4), (4, 6)]
    assert row(job_id).attempts == 4


def test_an_unknown_identity_ends_nothing(storage: Storage, held: Claim) -> None:
    given = ending(held._replace(worker=new_identity()), "ready")
    assert storage.end_many([given]) == [(held.id, held.fence)]
