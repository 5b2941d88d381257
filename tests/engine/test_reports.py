"""Progress and log lines of running jobs: seen while they run, and never in their way."""

import logging
import threading

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection
from django.db.utils import DataError

from jobqueue import events
from jobqueue.engine import log_capture, reports
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import LogLine, Progress
from jobqueue.runtime.reporter import Reporter
from tests.engine.bench import Bench, leave
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.engine.test_reruns import conflicting

logger = logging.getLogger("shop.import")


@pytest.fixture
def reporter(bench: Bench):
    """The writer of the bench's process; tests turn it by hand."""
    reporter = Reporter(bench.environment)
    logger.setLevel(logging.DEBUG)
    with log_capture.capturing():
        yield reporter
    logger.setLevel(logging.NOTSET)
    reporter.stop()


@pytest.fixture
def told(monkeypatch):
    """The events emitted."""
    seen = []
    monkeypatch.setattr(events, "_subscribers", [seen.append])
    return seen


def progress() -> list[tuple]:
    return list(Progress.objects.order_by("fence").values_list("done", "total", "message"))


def messages(**filters) -> list[str]:
    rows = LogLine.objects.filter(**filters).order_by("fence", "number")
    return list(rows.values_list("message", flat=True))


def test_progress_and_lines_are_seen_while_the_job_runs(bench: Bench, reporter):
    """Of an atomic job, too: they are no part of its transaction (SQLite's holds the lock)."""

    def body(context):
        context.progress(120, 500, "reading orders")
        logger.info("read %d orders", 120)
        reporter.run_once()
        return [progress(), messages()]

    ran = bench.run(body, plain_job if connection.vendor == "sqlite" else atomic_job)
    assert ran.job.result == [[[120.0, 500.0, "reading orders"]], ["read 120 orders"]]


def test_they_stay_when_the_job_rolls_back(bench: Bench, reporter):
    def body(context):
        context.progress(1, 2)
        logger.warning("now it comes")
        raise ValueError

    ran = bench.run(body)
    reporter.run_once()
    assert ran.state == "retrying"
    assert (progress(), messages()) == ([(1.0, 2.0, "")], ["now it comes"])


def test_the_last_value_wins_and_costs_one_write(bench: Bench, reporter, monkeypatch):
    def body(context):
        for done in range(1_000):
            context.progress(done, 1_000)

    bench.run(body)
    assert reporter._reports.take().progress[0].done == 999.0
    assert not reporter._reports.is_waiting


def test_what_is_said_again_after_a_write_is_written_again(bench: Bench, reporter):
    def body(context):
        context.progress(1)
        reporter.run_once()
        reporter.run_once()  # nothing new
        context.progress(2)

    bench.run(body, plain_job)
    reporter.run_once()
    assert progress() == [(2.0, None, "")]


@pytest.mark.parametrize(
    "given", [(-1,), (float("nan"),), (float("inf"),), (True,), ("7",), (1, -5), (10**400,)]
)
def test_progress_that_is_no_amount_is_refused(bench: Bench, reporter, given):
    def body(context):
        with pytest.raises(InvalidArgument, match="must be a number from 0"):
            context.progress(*given)

    assert bench.run(body).state == "succeeded"
    assert not reporter._reports.is_waiting


def test_lines_come_from_any_logger_at_info_and_above(bench: Bench, reporter):
    proud = logging.getLogger("shop.proud")
    proud.propagate = False
    silent = logging.getLogger("shop.silent")
    silent.setLevel(logging.ERROR)

    def body(context):
        logger.debug("too small")
        logger.info("seen")
        proud.warning("has handlers of its own")
        silent.warning("switched off by the project")
        context.log.info("by the context")

    bench.run(body)
    reporter.run_once()
    assert messages() == ["seen", "has handlers of its own", "by the context"]
    first = LogLine.objects.get(number=1)
    assert (first.level, first.logger) == (logging.INFO, "shop.import")


def test_lines_belong_to_the_run_that_logged_them(bench: Bench, reporter):
    """Not to one that happens to run, and not where no job runs."""

    def body(context):
        logger.info("in the job")
        thread = threading.Thread(target=logger.info, args=("in a thread of its own",))
        thread.start()
        thread.join()

    logger.info("before")
    first, second = bench.run(body), bench.run(body)
    logger.info("after")
    reporter.run_once()
    assert messages(job_id=first.id) == messages(job_id=second.id) == ["in the job"]
    assert LogLine.objects.count() == 2


def test_an_async_job_has_lines_wherever_it_awaits(bench: Bench, reporter):
    async def body(context):
        context.progress(1, 2, "awaiting")
        logger.info("in the loop")
        await sync_to_async(logger.info)("in its thread")

    ran = bench.run(body, async_job)
    reporter.run_once()
    assert messages(job_id=ran.id) == ["in the loop", "in its thread"]
    assert progress() == [(1.0, 2.0, "awaiting")]


def test_attempts_are_told_apart(bench: Bench, reporter):
    def body(context):
        logger.info("attempt %d", context.attempt)
        if context.attempt == 1:
            raise ValueError

    ran = bench.run(body)
    bench.again(ran)
    reporter.run_once()
    assert messages(fence=1) == ["attempt 1"]
    assert messages(fence=2) == ["attempt 2"]


def test_a_zombies_lines_bear_its_own_fence(bench: Bench, reporter):
    def body(context):
        bench.reap(claim)
        bench.storage.claim_many(bench.identity, [claim.queue], [claim.task], 1)
        logger.info("I am still here")

    claim = bench.claim_one(body, plain_job)
    bench.flush(bench.execute(claim, plain_job))
    reporter.run_once()
    assert LogLine.objects.get().fence == claim.fence == 1


def test_tracebacks_and_odd_records_become_text(bench: Bench, reporter):
    class Broken:
        def __str__(self):
            raise RuntimeError("no text")

    quiet = logging.getLogger("shop.quiet")
    quiet.propagate = False  # pytest's own handler raises what logging would print
    quiet.addHandler(logging.NullHandler())

    def body(context):
        try:
            raise ValueError("no such order")
        except ValueError:
            quiet.exception("failed")
        for words in [("%d orders", "many"), (Broken(),), ("\x00 and \ud800",), ("x" * 100_000,)]:
            quiet.error(*words)

    assert bench.run(body).state == "succeeded"
    reporter.run_once()
    failed, misfit, broken, escaped, long = messages()
    assert failed.startswith("failed\nTraceback")
    assert failed.endswith("ValueError: no such order")
    assert misfit.startswith("'%d orders' (its arguments do not fit")
    assert "RuntimeError" in broken
    assert escaped == "\\x00 and \\ud800"
    assert len(long) <= 4_096


def test_first_and_last_lines_of_a_chatty_run_are_kept(make_bench, monkeypatch):
    bench = make_bench(log_lines=6)
    reporter = Reporter(bench.environment)

    def body(context):
        for number in range(1, 51):
            logger.warning("%d", number)
            if number == 20:
                reporter.run_once()

    with log_capture.capturing():
        bench.run(body, plain_job)
    reporter.stop()
    assert messages() == ["1", "2", "3", "48", "49", "50"]


def test_no_line_is_kept_where_the_option_says_so(make_bench):
    bench = make_bench(log_lines=0)
    reporter = Reporter(bench.environment)
    with log_capture.capturing():
        bench.run(lambda context: (logger.warning("hello"), context.progress(1))[:0])
    reporter.stop()
    assert (messages(), progress()) == ([], [(1.0, None, "")])


def test_a_job_that_says_nothing_costs_no_connection(bench: Bench, reporter):
    bench.run(lambda context: None)
    reporter.run_once()
    assert reporter._connection is None


def test_reports_wait_while_the_database_is_away(bench: Bench, reporter, monkeypatch):
    bench.run(lambda context: logger.info("first"))
    with monkeypatch.context() as away:
        away.setattr(reports.Batch, "write", failing(OperationalError("gone")))
        with pytest.raises(OperationalError):
            reporter.run_once()
    bench.run(lambda context: logger.info("second"))
    reporter.run_once()
    reporter.run_once()
    assert messages() == ["first", "second"]


def test_reports_that_the_database_refuses_are_dropped_and_counted(
    bench: Bench, reporter, monkeypatch, told
):
    bench.run(lambda context: logger.info("refused"))
    with monkeypatch.context() as refusing:
        refusing.setattr(reports.Batch, "write", failing(DataError("out of range")))
        reporter.run_once()
    bench.run(lambda context: logger.info("taken"))
    reporter.run_once()
    assert messages() == ["taken"]
    assert [e.facts["count"] for e in told if e.name == "reports.dropped"] == [1]


@pytest.mark.parametrize("bound", ["MAX_WAITING_BYTES", "MAX_WAITING_RUNS"])
def test_what_waits_is_bounded_and_the_rest_counted(bench: Bench, reporter, monkeypatch, bound):
    monkeypatch.setattr(reports, bound, 3)
    for _ in range(10):
        bench.run(lambda context: logger.info("four"))
    assert 1 <= len(reporter._reports.take().lines) < 10
    assert reporter._reports.take_dropped() >= 6


def test_a_copy_that_a_job_forks_says_nothing(bench: Bench, reporter, monkeypatch):
    def body(context):
        with monkeypatch.context() as forked:
            forked.setattr(reports.os, "getpid", lambda: 1)
            logger.info("from the copy")
            context.progress(5)

    bench.run(body)
    assert not reporter._reports.is_waiting


@pytest.mark.postgres_only("SQLite has one writer at a time: nothing to run again")
def test_a_claim_that_is_run_again_counts_on(bench: Bench, reporter):
    def body(context):
        logger.info("hello")
        leave(context)

    with conflicting(1, "40001"):
        ran = bench.run(body)
    reporter.run_once()
    assert ran.state == "succeeded"
    assert list(LogLine.objects.order_by("id").values_list("fence", "number")) == [(1, 1), (1, 2)]


def failing(error: Exception):
    def write(self, storage):
        raise error

    return write
