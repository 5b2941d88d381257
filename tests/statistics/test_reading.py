"""Throughput, latency and error groups as the surfaces read them."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobqueue.engine import rollup_windows, statistics
from jobqueue.engine.counts import Count
from jobqueue.engine.rollup_windows import window
from jobqueue.engine.rollups import catch_up
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Job
from jobqueue.storage import Storage
from tests.statistics.making import NOON, OTHER_WORKER, WORKER, attempt, failure, record
from tests.storage.making import buried, register

NOW = NOON + timedelta(seconds=30)
MINUTE = timedelta(minutes=1)


def lines(series: statistics.Series) -> dict[str, int]:
    return {line.name: line.total for line in series.lines}


# --- periods ----------------------------------------


@pytest.mark.parametrize(
    ("period", "seconds", "step", "points"),
    [(60, 60, 60, 2), (3_600, 60, 60, 61), (21_600, 60, 300, 73), (86_400, 3_600, 3_600, 25),
     (30 * 86_400, 3_600, 28_800, 91)],
)  # fmt: skip
def test_a_period_has_whole_steps_and_the_open_one(
    db: None, period: int, seconds: int, step: int, points: int
) -> None:
    over = window(period, now=NOW)
    assert (over.seconds, over.step_seconds, len(over.starts)) == (seconds, step, points)
    assert over.starts[0] <= NOW - timedelta(seconds=period)
    assert over.starts[-1] <= NOW < over.starts[-1] + timedelta(seconds=step)
    assert over.index(NOW) == points - 1


@pytest.mark.parametrize("period", [0, 59, 31 * 86_400])
def test_a_period_that_no_rollup_covers_is_refused(db: None, period: int) -> None:
    with pytest.raises(InvalidArgument, match="A period has"):
        window(period, now=NOW)


# --- throughput ----------------------------------------


@pytest.fixture
def history(storage: Storage) -> None:
    """Attempts of an hour, and some before it."""
    record(
        attempt(NOON - 2 * MINUTE),
        attempt(NOON - MINUTE, task="shop.stock", queue="stock", worker=OTHER_WORKER),
        failure(NOON - MINUTE),
        failure(NOON - 2 * MINUTE, outcome="lost"),
        attempt(NOON - 3 * MINUTE, outcome="snoozed"),
        attempt(NOON - timedelta(hours=5), task="shop.old"),
    )
    catch_up(storage)


@pytest.mark.parametrize(
    ("by", "totals"),
    [
        ("outcome", {"succeeded": 2, "failed": 1, "lost": 1, "snoozed": 1}),
        ("queue", {"default": 4, "stock": 1}),
        ("task", {"shop.mail": 4, "shop.stock": 1}),
        ("worker", {WORKER.hex: 4, OTHER_WORKER.hex: 1}),
    ],
)
@pytest.mark.usefixtures("history")
def test_attempts_are_counted_by_what_is_asked(by: Any, totals: dict[str, int]) -> None:
    assert lines(statistics.throughput(3_600, by, now=NOW)) == totals


@pytest.mark.usefixtures("history")
def test_attempts_stand_in_the_step_in_which_they_ended() -> None:
    series = statistics.throughput(3_600, "task", now=NOW)
    assert series.starts[-1] == NOON
    assert list(series.lines[0].counts[-4:]) == [1, 2, 1, 0]
    assert list(series.lines[1].counts[-4:]) == [0, 0, 1, 0]


@pytest.mark.usefixtures("history")
def test_long_periods_say_the_same_from_hours() -> None:
    series = statistics.throughput(86_400, "task", now=NOW)
    assert lines(series) == {"shop.mail": 4, "shop.stock": 1, "shop.old": 1}


def test_only_the_busiest_are_listed(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup_windows, "MAX_NAMES", 2)
    record(*(attempt(NOON, task=f"shop.t{n}") for n in (1, 2, 2, 3, 3, 3)))
    catch_up(storage)
    series = statistics.throughput(3_600, "task", now=NOW)
    assert (lines(series), series.others) == ({"shop.t3": 3, "shop.t2": 2}, 1)


def test_workers_are_named_with_what_they_end_a_minute(storage: Storage) -> None:
    worker = register(storage, name="w1", host="here")
    gone = UUID("00000000-0000-4000-8000-00000000dead")
    record(
        *(attempt(NOON - MINUTE, worker=worker) for _ in range(10)),
        *(failure(NOON - 5 * MINUTE, worker=worker) for _ in range(5)),
        attempt(NOON, worker=worker),  # this minute is not over
        attempt(NOON - 6 * MINUTE, worker=worker),
        attempt(NOON - MINUTE, worker=gone),
    )
    catch_up(storage)
    busy, idle = statistics.worker_rates(now=NOW)
    assert (busy.worker, busy.name, busy.host) == (worker, "w1", "here")
    assert (busy.per_minute, busy.failed_per_minute) == (3.0, 1.0)
    assert (idle.worker, idle.name, idle.per_minute) == (gone, "", 0.2)


# --- latency ----------------------------------------


def test_percentiles_are_of_all_attempts_of_a_name(storage: Storage) -> None:
    record(
        *(attempt(NOON - n * MINUTE, waited=1.0, ran=0.1) for n in range(90)),
        *(attempt(NOON, waited=100.0, ran=5.0) for _ in range(10)),
        failure(NOON, task="shop.other", queue="other", waited=None),
    )
    catch_up(storage)
    mail, other = statistics.latency(7_000, "task", now=NOW)
    assert (mail.name, mail.attempts, mail.failed) == ("shop.mail", 100, 0)
    assert mail.wait.p50 == pytest.approx(1.0, rel=0.26)
    assert mail.wait.p95 == pytest.approx(100.0, rel=0.26)
    assert mail.run.p99 == pytest.approx(5.0, rel=0.26)
    assert mail.wait.mean == pytest.approx(10.9)
    assert (other.failed, other.wait.count, other.wait.p50) == (1, 0, None)
    assert [each.name for each in statistics.latency(7_000, "queue", now=NOW)] == [
        "default",
        "other",
    ]


def test_latency_has_a_course(storage: Storage) -> None:
    record(attempt(NOON - MINUTE, waited=1.0), attempt(NOON, waited=50.0, queue="slow"))
    catch_up(storage)
    course = statistics.latency_series(3_600, now=NOW)
    assert [spread.count for spread in course.waits[-3:]] == [0, 1, 1]
    assert course.waits[-1].p50 == pytest.approx(50.0, rel=0.26)
    slow = statistics.latency_series(3_600, queue="slow", now=NOW)
    assert [spread.count for spread in slow.runs[-3:]] == [0, 0, 1]
    assert statistics.latency_series(3_600, task="none", now=NOW).waits[-1].count == 0


@pytest.mark.usefixtures("history")
def test_totals_are_of_everything() -> None:
    total = statistics.totals(3_600, now=NOW)
    assert total.outcomes == {"succeeded": 2, "failed": 1, "lost": 1, "snoozed": 1}
    assert (total.attempts, total.per_minute) == (5, 1.0)
    assert (total.wait.count, total.run.count) == (5, 4)


def test_nothing_is_an_answer_too(storage: Storage) -> None:
    total = statistics.totals(3_600)
    assert (total.attempts, total.per_minute, total.wait.p50) == (0, 0.0, None)
    assert statistics.throughput(3_600).lines == []
    assert statistics.latency(3_600) == []
    assert statistics.worker_rates() == []
    assert statistics.error_groups(3_600).groups == []


def test_answers_say_as_of_when_they_are(storage: Storage) -> None:
    assert statistics.totals(3_600, now=NOW).as_of == NOW
    record(attempt())
    assert statistics.totals(3_600, now=NOW).as_of is None  # never complete yet
    catch_up(storage)
    assert statistics.totals(3_600, now=NOW).as_of == NOW


# --- errors ----------------------------------------


def error(letter: str, minutes: int = 0, **changes: Any) -> Any:
    return failure(NOON - minutes * MINUTE, error_fingerprint=letter * 32, **changes)


def test_groups_are_listed_by_when_they_were_seen_or_how_often(storage: Storage) -> None:
    record(error("a", 5), error("a", 5), error("a", 4), error("b", 1), error("c", 600))
    catch_up(storage)
    by_time = statistics.error_groups(3_600, now=NOW)
    assert [g.fingerprint[0] for g in by_time.groups] == ["b", "a"]
    by_count = statistics.error_groups(3_600, "count", now=NOW)
    assert [(g.fingerprint[0], g.count, g.total) for g in by_count.groups] == [
        ("a", 3, 3),
        ("b", 1, 1),
    ]
    assert list(by_count.groups[0].counts[-6:]) == [2, 1, 0, 0, 0, 0]
    assert len(statistics.error_groups(86_400, limit=1, now=NOW).groups) == 1


def test_a_group_says_how_many_dead_letters_it_has_left(storage: Storage) -> None:
    record(error("a"))
    catch_up(storage)
    dead = [buried(storage) for _ in range(3)]
    Job.objects.filter(id__in=dead[:2]).update(error_fingerprint="a" * 32)
    (group,) = statistics.error_groups(3_600, now=NOW).groups
    assert group.dead == Count(2)
    assert storage.dead_by_error(["a" * 32], 1) == {"a" * 32: 1}


def test_one_group_is_shown_with_its_course(storage: Storage) -> None:
    record(error("a", 1, error_message="no order 17"))
    catch_up(storage)
    (group,) = statistics.error_group("a" * 32, 3_600, now=NOW).groups
    assert (group.error_class, group.message) == ("builtins.ValueError", "no order #")
    assert statistics.error_group("b" * 32, 3_600, now=NOW).groups == []


# --- cost ----------------------------------------


@pytest.mark.parametrize(
    "read",
    [
        lambda: statistics.throughput(86_400, "task"),
        lambda: statistics.latency(3_600, "task"),
        lambda: statistics.latency_series(3_600),
        lambda: statistics.totals(86_400),
        lambda: statistics.worker_rates(),
        lambda: statistics.error_groups(3_600),
        lambda: statistics.error_groups(3_600, "count"),
    ],
)
def test_a_question_reads_rollups_only_and_costs_few_statements(storage: Storage, read) -> None:
    record(*(failure(task=f"shop.t{n}", error_fingerprint=f"{n:032}") for n in range(30)))
    catch_up(storage)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        read()
    assert len(queries) <= 8
    scanned = [q["sql"] for q in queries if "jobqueue_attempt" in q["sql"]]
    assert all("LIMIT 1" in sql for sql in scanned)  # the first uncounted one, by its key
