"""Where a worker looks: no full window of rows that it cannot use hides what stands behind."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobqueue.engine.limits import Taken, Wish, claim_free, take
from jobqueue.models import Job, Limit
from jobqueue.runtime import queue_scan as queue_scan_module
from jobqueue.runtime.queue_scan import LOOK_AGAIN_SECONDS, QueueScan
from jobqueue.storage import postgres, sqlite
from jobqueue.storage.records import FRONT
from tests.engine.bench import Bench
from tests.runtime.clock import Clock
from tests.storage.making import TASK, insert

WINDOW = 5


@pytest.fixture(autouse=True)
def small_window(monkeypatch):
    """A window that a test can fill."""
    monkeypatch.setattr(postgres, "CLAIM_WINDOW", WINDOW)
    monkeypatch.setattr(sqlite, "CLAIM_WINDOW", WINDOW)


@pytest.fixture
def clock(monkeypatch):
    fake = Clock()
    monkeypatch.setattr(queue_scan_module, "time", fake)
    return fake


def fetch(bench: Bench, scan: QueueScan, limit: int = 10) -> list:
    """Claim as the worker does; return the ids."""
    queues, behind = scan.look(bench.storage)
    if not queues:
        return []
    claims = bench.storage.claim_many(bench.identity, queues, scan.tasks, limit, behind)
    if not claims and scan.found_nothing(bench.storage):
        return fetch(bench, scan, limit)
    return [claim.id for claim in claims]


def looking(*queues: str, tasks=(TASK,)) -> QueueScan:
    return QueueScan(tasks, queues, poll_seconds=1.0)


@pytest.mark.parametrize("windows", [1, 2, 3])
def test_full_windows_of_unknown_tasks_do_not_hide_the_rest(bench: Bench, clock, windows):
    earlier = timezone.now() - timedelta(hours=1)
    for n in range(windows * WINDOW):
        insert(bench.storage, task="elsewhere.known", now=earlier + timedelta(seconds=n))
    wanted = insert(bench.storage, 2)
    assert set(fetch(bench, looking("default"))) == set(wanted)


def test_jobs_of_the_same_rank_as_the_last_of_a_window_are_not_skipped_with_it(bench: Bench, clock):
    """Jobs due at the same instant have the same rank, whatever their task."""
    midnight = timezone.now() - timedelta(hours=1)
    insert(bench.storage, WINDOW - 1, task="elsewhere.known", now=midnight)
    last = midnight + timedelta(seconds=1)
    insert(bench.storage, 2, task="elsewhere.known", now=last)
    wanted = insert(bench.storage, 2, now=last)
    scan = looking("default")
    assert set(fetch(bench, scan) + fetch(bench, scan)) == set(wanted)


def test_jobs_of_one_rank_that_are_not_ours_do_not_hide_ours(bench: Bench, clock):
    """As after one large ``enqueue_many``, or one ``run_after`` for thousands."""
    noon = timezone.now() - timedelta(hours=1)
    insert(bench.storage, 3 * WINDOW, task="elsewhere.known", now=noon)
    wanted = insert(bench.storage, now=noon)
    scan = looking("default")
    found = [job_id for _ in range(4) for job_id in fetch(bench, scan)]
    assert found == wanted


def test_jobs_that_must_run_alone_do_not_hide_the_rest(bench: Bench, clock):
    insert(bench.storage, WINDOW)
    Job.objects.update(alone=True)
    wanted = insert(bench.storage, 1)
    assert fetch(bench, looking("default")) == wanted


def test_what_comes_in_front_is_seen_after_a_moment(bench: Bench, clock):
    for _ in range(WINDOW):
        insert(bench.storage, task="elsewhere.known")
    scan = looking("default")
    assert fetch(bench, scan) == []
    urgent = insert(bench.storage, priority=50)
    assert fetch(bench, scan) == []
    clock.advance(LOOK_AGAIN_SECONDS + 0.1)
    assert fetch(bench, scan) == urgent


def test_what_comes_in_front_is_seen_at_once_after_a_hint(bench: Bench, clock):
    for _ in range(WINDOW):
        insert(bench.storage, task="elsewhere.known")
    scan = looking("default")
    assert fetch(bench, scan) == []
    urgent = insert(bench.storage, priority=50)
    scan.hinted()
    assert fetch(bench, scan) == urgent


def test_a_window_that_is_not_full_is_not_skipped(bench: Bench, clock):
    for _ in range(WINDOW - 1):
        insert(bench.storage, task="elsewhere.known")
    scan = looking("default")
    assert fetch(bench, scan) == []
    assert scan.look(bench.storage) == (["default"], [FRONT])


def test_one_queue_that_is_blocked_does_not_hide_another(bench: Bench, clock):
    for _ in range(WINDOW):
        insert(bench.storage, task="elsewhere.known")
    wanted = insert(bench.storage, queue="mail")
    assert fetch(bench, looking("default", "mail")) == wanted


def test_a_worker_without_named_queues_looks_wherever_jobs_are(bench: Bench, clock):
    scan = looking()
    assert fetch(bench, scan) == []
    wanted = insert(bench.storage, queue="reports")
    clock.advance(LOOK_AGAIN_SECONDS + 0.1)
    assert fetch(bench, scan) == wanted


def test_after_nothing_was_found_it_rests_until_the_poll_or_a_hint(bench: Bench, clock):
    scan = looking("default")
    assert scan.is_due
    assert fetch(bench, scan) == []
    assert not scan.is_due
    clock.advance(1.3)
    assert scan.is_due
    assert fetch(bench, scan) == []
    scan.hinted()
    assert scan.is_due


def test_a_worker_without_tasks_of_a_kind_never_looks(clock):
    assert not looking("default", tasks=()).is_due


def test_a_hint_that_comes_during_a_look_is_not_slept_over(bench: Bench, clock, monkeypatch):
    """Between the claim and the rest another thread says that there is work."""
    scan = looking("default")
    real = bench.storage.read_windows

    def read_windows(*args):
        found = real(*args)
        scan.hinted()
        return found

    monkeypatch.setattr(bench.storage, "read_windows", read_windows)
    assert fetch(bench, scan) == []
    assert scan.is_due


def test_rows_that_stay_locked_are_asked_for_less_and_less_often(bench: Bench, clock):
    insert(bench.storage, 1)
    scan = looking("default")
    pauses = []
    for _ in range(12):
        scan.look(bench.storage)
        scan.found_nothing(bench.storage)  # the claim has passed over the locked row
        pauses.append(scan.rest_seconds)
        clock.advance(2.0)
    assert pauses[0] < 0.01
    assert max(pauses) > 0.4
    assert max(pauses) <= 1.5
    scan.found_something()
    scan.look(bench.storage)
    scan.found_nothing(bench.storage)
    assert scan.rest_seconds < 0.01


def test_only_a_look_that_found_nothing_says_that_there_is_nothing(bench: Bench, clock):
    scan = looking("default")
    assert scan.empty_looks == 0
    fetch(bench, scan)
    clock.advance(2.0)
    fetch(bench, scan)
    assert scan.empty_looks == 2
    insert(bench.storage, 1)
    clock.advance(2.0)
    fetch(bench, scan)
    scan.found_something()
    assert scan.empty_looks == 0


# --- limits ----------------------------------------


def limited_fetch(bench: Bench, scan: QueueScan) -> list:
    """Claim as the worker does, jobs with a limit too; return the ids."""
    queues, behind = scan.look(bench.storage)
    taken = Taken()
    wish = Wish(bench.identity, queues, scan.tasks, behind)
    if scan.has_limited:
        taken = take(bench.storage, wish, 10, 10)
        scan.learn(taken)
    else:
        taken.claims = claim_free(bench.storage, wish, 10)
    if len(taken):
        scan.found_something()
    elif scan.found_nothing(bench.storage, taken):
        return limited_fetch(bench, scan)
    return [claim.id for claim in (*taken.limited, *taken.claims)]


def test_a_job_with_a_limit_is_found_by_the_look_that_follows_an_empty_claim(bench: Bench, clock):
    scan = looking("default")
    assert limited_fetch(bench, scan) == []
    assert not scan.has_limited
    job = insert(bench.storage, limit_key="customer:42")
    assert limited_fetch(bench, scan) == job


def test_claims_that_are_never_empty_look_for_jobs_with_a_limit_once_a_second(bench: Bench, clock):
    scan = looking("default")
    (job,) = insert(bench.storage, limit_key="customer:42")
    (free,) = insert(bench.storage)
    assert limited_fetch(bench, scan) == [free]
    clock.advance(LOOK_AGAIN_SECONDS + 0.1)
    (free,) = insert(bench.storage)
    assert limited_fetch(bench, scan) == [job, free]


def test_a_full_queue_is_left_until_one_of_its_jobs_has_ended(bench: Bench, clock):
    Limit.objects.create(key="queue:mail", running=1)
    bench.storage.flag_queues()
    insert(bench.storage, 2, queue="mail")
    scan = looking("mail", "default")
    assert len(limited_fetch(bench, scan)) == 1
    assert limited_fetch(bench, scan) == []
    assert not scan.is_due  # although the window is full of jobs
    scan.has_ended("default")
    assert not scan.is_due
    scan.has_ended("mail")
    assert scan.is_due


def test_a_key_that_others_hold_is_looked_at_again_in_a_moment(bench: Bench, clock):
    scan = looking("default")
    scan.look(bench.storage)
    assert not scan.found_nothing(bench.storage, Taken(is_contended=True))
    assert scan.rest_seconds < 0.01
