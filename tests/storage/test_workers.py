"""The life of workers: a fact in their row, decided there, once."""

from datetime import UTC, datetime, timedelta

import pytest

from jobqueue.ids import lock_key, new_identity
from jobqueue.models import Worker
from jobqueue.states import Blame
from jobqueue.storage import Storage
from jobqueue.storage.life_file import LifeFile
from jobqueue.storage.records import Renewal
from tests.storage.making import TASK, claimed, ending, insert, register, row


def end_process(storage: Storage, worker) -> None:
    """Let a worker's process have ended, as the database sees it a moment later."""
    if storage.one_host:
        LifeFile(storage.connection.settings_dict["NAME"], worker).release()
    else:
        long_ago = datetime(2020, 1, 1, tzinfo=UTC)
        Worker.objects.filter(pk=worker).update(lease_until=long_ago, heartbeat_at=long_ago)


def test_a_registered_worker_is_alive(storage: Storage) -> None:
    supervisor = register(storage, kind="supervisor", tasks=())
    worker = register(storage, supervisor=supervisor, lease_seconds=30.0, direct=True)
    found = {each.id: each for each in storage.workers()}
    assert set(found) == {supervisor, worker}
    mine = found[worker]
    assert (mine.kind, mine.supervisor, mine.direct) == ("worker", supervisor, True)
    assert 0 < mine.lease_left <= 30.0
    assert mine.renewed_ago >= 0.0


def test_a_workers_row_says_who_it_is(storage: Storage) -> None:
    worker = register(storage, name="n" * 300, queues=("a", "b"), slots=7, lease_seconds=30.0)
    stored = Worker.objects.get(pk=worker)
    assert (stored.queues, stored.tasks, stored.slots) == (["a", "b"], [TASK], 7)
    assert stored.name == "n" * 255
    assert stored.lease_until - stored.started_at == timedelta(seconds=30)
    assert stored.heartbeat_at == stored.started_at
    assert (stored.draining, stored.dead, stored.dead_at) == (False, False, None)


def test_a_beat_renews_the_lease(storage: Storage) -> None:
    worker = register(storage, lease_seconds=1.0)
    assert storage.renew_worker(worker, 60.0, direct=True) == Renewal(draining=False)
    stored = Worker.objects.get(pk=worker)
    assert stored.lease_until - stored.heartbeat_at == timedelta(seconds=60)
    assert stored.direct is True


def test_a_dead_or_unknown_worker_cannot_renew(storage: Storage) -> None:
    worker = register(storage)
    storage.mark_dead(worker, "test")
    assert storage.renew_worker(worker, 60.0, direct=False) is None
    assert storage.renew_worker(new_identity(), 60.0, direct=False) is None
    assert Worker.objects.get(pk=worker).dead is True


def test_a_worker_dies_once(storage: Storage) -> None:
    worker = register(storage)
    assert storage.mark_dead(worker, "r" * 100) is True
    stored = Worker.objects.get(pk=worker)
    assert (stored.dead, stored.dead_reason) == (True, "r" * 64)
    assert stored.dead_at is not None
    assert storage.mark_dead(worker, "again") is False
    assert storage.mark_dead(new_identity(), "unknown") is False
    assert Worker.objects.get(pk=worker).dead_at == stored.dead_at
    assert storage.workers() == []


def test_a_living_worker_is_not_declared_dead(storage: Storage) -> None:
    worker = register(storage)
    assert storage.mark_expired(worker) is False
    assert storage.workers()[0].lease_left > 0


def test_a_worker_whose_process_ended_is_declared_dead_once(storage: Storage) -> None:
    worker, living = register(storage), register(storage)
    end_process(storage, worker)
    assert {each.id for each in storage.workers() if each.lease_left < 0} == {worker}
    assert storage.mark_expired(worker) is True
    assert storage.mark_expired(worker) is False
    assert [each.id for each in storage.workers()] == [living]


@pytest.mark.postgres_only("on SQLite no lease decides, see test_life_file")
def test_a_lease_runs_out_by_the_given_clock(storage: Storage) -> None:
    worker = register(storage, lease_seconds=60.0)
    until = Worker.objects.get(pk=worker).lease_until
    assert storage.mark_expired(worker, now=until) is False
    late = until + timedelta(microseconds=1)
    assert storage.workers(now=late)[0].lease_left < 0
    assert storage.mark_expired(worker, now=late) is True


@pytest.mark.postgres_only("on SQLite no lease decides, see test_life_file")
def test_a_renewed_lease_saves_a_worker_that_was_seen_expired(storage: Storage) -> None:
    worker = register(storage)
    end_process(storage, worker)
    assert storage.renew_worker(worker, 60.0, direct=False) == Renewal(draining=False)
    assert storage.mark_expired(worker) is False


def test_known_tasks_are_those_of_living_workers(storage: Storage) -> None:
    register(storage, tasks=("a", "b"))
    gone = register(storage, tasks=("b", "c"))
    register(storage, kind="supervisor", tasks=("d",))
    assert storage.known_tasks() == {"a", "b", "c"}
    storage.mark_dead(gone, "test")
    assert storage.known_tasks() == {"a", "b"}


def test_a_worker_may_learn_tasks_but_a_dead_one_learns_nothing(storage: Storage) -> None:
    worker = register(storage, tasks=("a",))
    storage.update_worker_tasks(worker, ["a", "b"])
    assert storage.known_tasks() == {"a", "b"}
    storage.mark_dead(worker, "test")
    storage.update_worker_tasks(worker, ["c"])
    assert storage.known_tasks() == set()


def test_running_jobs_are_found_by_their_workers(storage: Storage) -> None:
    first, second, idle = register(storage), register(storage), register(storage)
    mine, yours = claimed(storage, first, on_crash="bury"), claimed(storage, second)
    insert(storage)
    (held,) = storage.running_of([first, idle])
    assert (held.id, held.fence, held.worker) == (mine.id, mine.fence, first)
    assert (held.task, held.queue, held.backend) == (mine.task, mine.queue, mine.backend)
    assert (held.attempts, held.failures, held.max_attempts) == (0, 0, 5)
    assert (held.suspicions, held.on_crash, held.alone) == (0, "bury", False)
    assert [h.id for h in storage.running_of([second, first])] == sorted([mine.id, yours.id])
    assert storage.running_of([]) == []


def test_orphans_are_jobs_of_the_dead_and_of_unknown_identities(storage: Storage) -> None:
    living, dead, pruned = register(storage), register(storage), register(storage)
    for worker in (living, dead, dead, pruned):
        claimed(storage, worker)
    assert storage.orphan_workers() == []
    storage.mark_dead(dead, "test", Blame.NOBODY)
    Worker.objects.filter(pk=pruned).delete()
    found = {each.worker: each for each in storage.orphan_workers()}
    assert set(found) == {dead, pruned}
    assert found[dead][1:3] == ("test", Blame.NOBODY)
    assert found[pruned][1:3] == ("no live row", Blame.JOBS)


def test_a_dead_workers_row_keeps_who_is_to_blame(storage: Storage) -> None:
    crashed, expired = register(storage), register(storage)
    storage.mark_dead(crashed, "test")
    end_process(storage, expired)
    assert storage.mark_expired(expired, Blame.NOBODY) is True
    storage.mark_dead(crashed, "again", Blame.STOPPED)
    blames = dict(Worker.objects.values_list("id", "blame"))
    assert blames == {crashed: Blame.JOBS, expired: Blame.NOBODY}


def test_a_dead_worker_without_a_job_is_no_orphan(storage: Storage) -> None:
    held = claimed(storage)
    storage.mark_dead(held.worker, "test")
    storage.end_many([ending(held, "ready", outcome="lost")])
    assert storage.orphan_workers() == []


def test_overdue_is_past_the_deadline_by_more_than_the_slack(storage: Storage) -> None:
    held = claimed(storage, timeout=10.0)
    insert(storage, 2, timeout=0.1)
    deadline = row(held.id).deadline
    assert storage.overdue(5.0) == []
    assert storage.overdue(5.0, now=deadline + timedelta(seconds=5)) == []
    late = deadline + timedelta(seconds=5, milliseconds=1)
    assert [h.id for h in storage.overdue(5.0, now=late)] == [held.id]
    assert storage.overdue(0.0, now=deadline + timedelta(milliseconds=1)) != []


def test_rows_of_long_dead_idle_workers_are_pruned(storage: Storage) -> None:
    living, idle, holding = register(storage), register(storage), register(storage)
    claimed(storage, holding)
    storage.mark_dead(idle, "test")
    storage.mark_dead(holding, "test")
    assert storage.prune_workers(3_600.0) == 0
    assert storage.prune_workers(-1.0) == 1
    assert set(Worker.objects.values_list("id", flat=True)) == {living, holding}


def test_a_held_life_lock_is_seen_by_others(storage: Storage, other: Storage) -> None:
    worker, unlocked = register(storage), new_identity()
    storage.hold_life_lock(worker)
    seen = storage.life_locks() if storage.one_host else other.life_locks()
    assert lock_key(worker) in seen
    assert lock_key(unlocked) not in seen
