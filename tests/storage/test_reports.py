"""Progress and log lines: rows of their own, whose writes may be repeated and wait for nobody."""

from datetime import timedelta

import pytest

from jobqueue.models import Job, LogLine, Progress
from jobqueue.storage import Storage
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.records import Claim, NewLine, NewProgress
from tests.storage.making import claimed, insert, prune


@pytest.fixture
def held(storage: Storage) -> Claim:
    return claimed(storage)


def amount(of: Claim, done: float, **changes) -> NewProgress:
    return NewProgress(of.id, of.fence, done, 500.0, "reading", 0.0)._replace(**changes)


def lines(of: Claim, *numbers: int, **changes) -> list[NewLine]:
    return [
        NewLine(of.id, of.fence, n, 20, "shop", f"line {n}", 0.0)._replace(**changes)
        for n in numbers
    ]


def numbers() -> list[int]:
    return list(LogLine.objects.order_by("number").values_list("number", flat=True))


def test_last_progress_of_a_run_is_kept(storage: Storage, held: Claim) -> None:
    storage.write_progress([amount(held, 1)])
    storage.write_progress([amount(held, 2, total=None, message="")])
    kept = Progress.objects.get()
    assert (kept.job_id, kept.fence, kept.done, kept.total, kept.message) == (
        held.id,
        1,
        2.0,
        None,
        "",
    )


def test_each_run_has_its_own(storage: Storage, held: Claim) -> None:
    """What a zombie says after another has taken over does not hide what that one says."""
    storage.write_progress([amount(held, 7, fence=2), amount(held, 3)])
    storage.write_lines([*lines(held, 1, fence=2), *lines(held, 1)], 10)
    assert set(Progress.objects.values_list("fence", "done")) == {(1, 3.0), (2, 7.0)}
    assert set(LogLine.objects.values_list("fence", "number")) == {(1, 1), (2, 1)}


def test_times_are_on_the_databases_clock(storage: Storage, held: Claim) -> None:
    storage.write_progress([amount(held, 1, ago=3_600.0)])
    storage.write_lines(lines(held, 1, ago=3_600.0), 10)
    hour_ago = storage.clock() - timedelta(hours=1)
    for said in (Progress.objects.get().reported_at, LogLine.objects.get().logged_at):
        assert abs(said - hour_ago) < timedelta(minutes=1)


def test_lines_that_are_sent_again_are_there_once(storage: Storage, held: Claim) -> None:
    storage.write_lines(lines(held, 1, 2), 10)
    storage.write_lines(lines(held, 1, 2, 3), 10)
    assert numbers() == [1, 2, 3]


def test_first_and_last_lines_of_a_long_run_stay(storage: Storage, held: Claim) -> None:
    for start in range(1, 40, 3):
        storage.write_lines(lines(held, start, start + 1, start + 2), 6)
    assert numbers() == [1, 2, 3, 37, 38, 39]


def test_text_is_kept_as_it_is(storage: Storage, held: Claim) -> None:
    text = 'größer %s "quoted" \\ \n  second line 🙂'
    storage.write_lines(lines(held, 1, message=text), 10)
    storage.write_progress([amount(held, 1, message=text[:100])])
    assert LogLine.objects.get().message == text
    assert Progress.objects.get().message == text[:100]


def test_reports_of_a_job_that_is_gone_are_left_out(storage: Storage, held: Claim) -> None:
    (other,) = insert(storage)
    Job.objects.filter(pk=other).delete()
    gone = held._replace(id=other)
    storage.write_progress([amount(gone, 1), amount(held, 1)])
    storage.write_lines([*lines(gone, 1), *lines(held, 1)], 10)
    assert Progress.objects.get().job_id == held.id
    assert LogLine.objects.get().job_id == held.id


def test_they_are_pruned_with_their_job(storage: Storage, held: Claim) -> None:
    storage.write_progress([amount(held, 1)])
    storage.write_lines(lines(held, 1), 10)
    storage.finish_one(held, "null", 0.0)
    assert prune(storage, "succeeded", -1.0, 10) == 1
    assert (Progress.objects.count(), LogLine.objects.count()) == (0, 0)


@pytest.mark.postgres_only("on SQLite they wait for the only write lock")
def test_they_do_not_wait_for_the_jobs_own_transaction(
    storage: Storage, other: Storage, held: Claim
) -> None:
    with transaction_on(other.connection):
        other.hold(held, None)
        storage.write_progress([amount(held, 1)])
        storage.write_lines(lines(held, 1), 10)
    assert (Progress.objects.count(), LogLine.objects.count()) == (1, 1)
