"""run_due: jobs as rows, run where a TestCase stands, on its connection and in its transaction."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from django.utils import timezone

from jobqueue import compat
from jobqueue.exceptions import JobQueueError
from jobqueue.models import Attempt, Job, Queue, Step, Worker
from jobqueue.storage import life_file
from jobqueue.testing import enqueued, run_due, running
from tests.app.models import Effect
from tests.testing import tasks


def effects(order: str = "1") -> list[str]:
    found = Effect.objects.filter(job_id=order).order_by("id")
    return list(found.values_list("label", flat=True))


def states(*results) -> list[str]:
    for result in results:
        result.refresh()
    return [str(result.job_state) for result in results]


class RunDueTests(TestCase):
    """Everything in the transaction of a TestCase."""

    def setUp(self):
        tasks.hooked.clear()

    # --- what jobs say of themselves ----------------------------------------

    def test_progress_and_log_lines_are_rows_as_in_production(self):
        result = tasks.reporting.enqueue("1")
        run_due()
        run_due(advance=timedelta(seconds=1))
        assert str(result.progress) == "2 of 2 (100 %), trying"
        assert [(line.fence, line.message) for line in result.log_lines] == [
            (1, "attempt 1"),
            (2, "attempt 2"),
        ]

    # --- what runs ----------------------------------------

    def test_due_jobs_run_with_what_they_enqueue(self):
        result = tasks.pay.enqueue("1")
        report = run_due()
        assert len(report) == 2
        assert [job.task for job in report.succeeded] == [tasks.pay, tasks.ship]
        assert report.jobs[1].return_value == {"order": "1"}
        assert effects() == ["paid", "shipped"]
        assert states(result) == ["succeeded"]

    def test_nothing_due_is_an_empty_report(self):
        assert len(run_due()) == 0

    def test_only_what_is_ready_now_runs_where_asked(self):
        tasks.pay.enqueue("1")
        assert len(run_due(until_empty=False)) == 1
        assert states(*enqueued(tasks.ship)) == ["ready"]

    def test_a_limit_leaves_the_rest_ready(self):
        results = [tasks.ship.enqueue(str(n)) for n in range(3)]
        assert len(run_due(limit=2)) == 2
        assert sorted(states(*results)) == ["ready", "succeeded", "succeeded"]
        assert len(run_due(limit=0)) == 0

    def test_the_most_urgent_runs_first(self):
        tasks.ship.using(priority=-10).enqueue("low")
        tasks.ship.using(priority=10).enqueue("high")
        assert [job.args for job in run_due().jobs] == [["high"], ["low"]]

    def test_only_the_named_queues_are_worked_off(self):
        mail = tasks.ship.using(queue_name="mail").enqueue("1")
        other = tasks.ship.enqueue("2")
        run_due(queues=["mail"])
        assert states(mail, other) == ["succeeded", "ready"]

    def test_a_paused_queue_is_left_alone(self):
        Queue.objects.create(name="default", paused=True, paused_at=timezone.now())
        result = tasks.ship.enqueue("1")
        assert (len(run_due()), states(result)) == (0, ["ready"])

    def test_a_job_that_enqueues_itself_for_ever_is_found_out(self):
        running_most, running.MOST_RUNS = running.MOST_RUNS, 5
        self.addCleanup(setattr, running, "MOST_RUNS", running_most)
        tasks.endless.enqueue(0)
        with self.assertRaisesMessage(JobQueueError, "enqueue itself"):
            run_due()
        assert len(run_due(limit=7)) == 7

    # --- time ----------------------------------------

    def test_a_scheduled_job_runs_once_its_time_has_come(self):
        result = tasks.ship.using(run_after=timedelta(days=3)).enqueue("1")
        assert len(run_due()) == 0
        assert len(run_due(advance=timedelta(days=2))) == 0
        assert len(run_due(advance=timedelta(days=4))) == 1
        assert states(result) == ["succeeded"]

    def test_a_retry_runs_once_its_time_has_come_and_not_before(self):
        result = tasks.flaky.enqueue("1")
        assert len(run_due().failed) == 1
        assert (len(run_due()), states(result)) == (0, ["retrying"])
        report = run_due(advance=timedelta(minutes=5))
        assert [job.job_state for job in report.failed] == ["dead"]
        assert Attempt.objects.count() == 2

    def test_what_fails_in_a_call_is_not_run_again_by_it(self):
        tasks.flaky.enqueue("1")
        assert len(run_due(advance=timedelta(days=1))) == 1

    def test_a_snooze_ends_neither_well_nor_badly(self):
        result = tasks.snoozing.enqueue("1")
        report = run_due(advance=timedelta(days=1))
        assert (len(report), report.succeeded, report.failed) == (1, [], [])
        assert states(result) == ["scheduled"]

    # --- failures ----------------------------------------

    def test_a_failure_rolls_back_its_own_writes_and_no_others(self):
        tasks.ship.enqueue("1")
        tasks.pay.enqueue("1", fails=True)
        Effect.objects.create(job_id="1", label="the test's")
        report = run_due()
        assert (len(report.succeeded), len(report.failed)) == (1, 1)
        assert effects() == ["the test's", "shipped"]
        assert enqueued(tasks.ship) == report.succeeded

    def test_the_report_holds_the_state_after_each_run(self):
        result = tasks.hopeless.enqueue("1")
        (failed,) = run_due().failed
        assert (failed.id, failed.reason) == (result.id, "gave up")
        assert failed.errors[0].exception_class_path == "jobqueue.exceptions.GiveUp"

    def test_an_error_may_be_the_tests_error(self):
        result = tasks.pay.enqueue("1", fails=True)
        with pytest.raises(ValueError, match="card refused") as caught:
            run_due(raise_errors=True)
        assert "pay" in [entry.name for entry in caught.traceback]
        assert states(result) == ["retrying"]
        assert effects() == []

    def test_an_error_of_an_async_task_may_be_the_tests_error(self):
        tasks.notify.enqueue("1", fails=True)
        with self.assertRaisesMessage(ValueError, "no answer"):
            run_due(raise_errors=True)

    def test_what_is_no_error_of_the_tasks_code_is_told_all_the_same(self):
        tasks.unstorable.enqueue()
        with self.assertRaisesMessage(JobQueueError, "ResultNotSerializable"):
            run_due(raise_errors=True)

    def test_a_snooze_is_nobodys_error(self):
        tasks.snoozing.enqueue("1")
        assert len(run_due(raise_errors=True)) == 1

    # --- the test's transaction ----------------------------------------

    def test_the_connection_stays_open_and_in_its_transaction(self):
        before = connection.connection
        tasks.pay.enqueue("1")
        tasks.hopeless.enqueue("1")
        run_due()
        assert connection.connection is before
        assert connection.in_atomic_block
        assert Job.objects.count() == 3

    def test_a_swallowed_database_error_fails_its_job_only(self):
        tasks.swallowing.enqueue("1")
        tasks.ship.enqueue("2")
        report = run_due()
        assert (len(report.failed), len(report.succeeded)) == (1, 1)
        assert (effects("1"), effects("2")) == ([], ["shipped"])

    def test_a_database_error_outside_of_atomic_does_not_break_the_test(self):
        tasks.broken.enqueue("1")
        tasks.ship.enqueue("2")
        report = run_due()
        assert (len(report.failed), len(report.succeeded)) == (1, 1)
        assert effects("2") == ["shipped"]

    def test_a_block_left_open_by_a_job_is_left_for_it(self):
        tasks.leaving_open.enqueue("1")
        tasks.leaving_open_plainly.enqueue("2")
        tasks.ship.enqueue("3")
        blocks = len(connection.atomic_blocks)
        report = run_due()
        assert (len(report.failed), len(report.succeeded)) == (2, 1)
        assert (effects("1"), effects("2"), effects("3")) == ([], [], ["shipped"])
        assert len(connection.atomic_blocks) == blocks

    def test_hooks_run_where_the_test_captures_them(self):
        tasks.hooking.enqueue("1")
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            run_due()
        assert (tasks.hooked, len(callbacks)) == (["1"], 1)

    def test_hooks_do_not_run_otherwise(self):
        tasks.hooking.enqueue("1")
        assert len(run_due().succeeded) == 1
        assert tasks.hooked == []

    def test_a_block_with_commit_ends_the_job(self):
        result = tasks.plain.enqueue("1")
        run_due(raise_errors=True)
        assert (states(result), effects()) == (["succeeded"], ["outside", "inside"])
        assert result.return_value == "committed"

    def test_a_step_is_not_run_again(self):
        tasks.stepping.enqueue("1")
        run_due()
        run_due(advance=timedelta(hours=1))
        assert effects() == ["charged"]
        assert Step.objects.get().result == "ch_1"

    def test_an_async_job_runs_in_the_tests_transaction(self):
        result = tasks.notify.enqueue("1")
        run_due()
        assert (states(result), effects()) == (["succeeded"], ["notified"])

    def test_no_limit_of_ours_is_left_on_the_tests_transaction(self):
        """A test may stop in a debugger for longer than a job may wait for its COMMIT."""
        tasks.ship.enqueue("1")
        tasks.plain.enqueue("1")
        run_due()
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SHOW idle_in_transaction_session_timeout")
                assert cursor.fetchone() == ("0",)

    def test_inside_the_tests_own_atomic_block_all_is_rolled_back_with_it(self):
        result = tasks.ship.enqueue("1")
        with transaction.atomic():
            run_due()
            transaction.set_rollback(True)
        assert (states(result), effects()) == (["ready"], [])

    # --- nothing else ----------------------------------------

    def test_no_worker_is_left_behind(self):
        tasks.ship.enqueue("1")
        tasks.pay.enqueue("1", fails=True)
        run_due()
        tasks.pay.enqueue("2", fails=True)
        with pytest.raises(ValueError, match="card refused"):
            run_due(raise_errors=True)
        assert Worker.objects.count() == 0
        assert life_file._held == {}

    def test_signals_are_sent_as_in_a_worker(self):
        heard = []

        def started(sender, task_result, **kwargs):
            heard.append(("started", task_result.status.value))

        def finished(sender, task_result, **kwargs):
            heard.append(("finished", task_result.status.value))

        compat.task_started.connect(started)
        compat.task_finished.connect(finished)
        self.addCleanup(compat.task_started.disconnect, started)
        self.addCleanup(compat.task_finished.disconnect, finished)
        tasks.ship.enqueue("1")
        run_due()
        assert heard == [("started", "RUNNING"), ("finished", "SUCCESSFUL")]


class RunDueWithCommitsTests(TransactionTestCase):
    """Where a test commits, so do the jobs."""

    available_apps = ["jobqueue", "tests.app"]

    def setUp(self):
        tasks.hooked.clear()

    def test_jobs_commit_and_their_hooks_run(self):
        tasks.hooking.enqueue("1")
        report = run_due()
        assert (len(report.succeeded), tasks.hooked) == (1, ["1"])
        assert not connection.in_atomic_block
        assert effects() == ["hooked"]

    def test_a_failure_rolls_back(self):
        tasks.pay.enqueue("1", fails=True)
        assert (len(run_due().failed), effects()) == (1, [])

    def test_a_block_with_commit_ends_the_job(self):
        result = tasks.plain.enqueue("1")
        run_due()
        assert (states(result), effects()) == (["succeeded"], ["outside", "inside"])

    def test_a_broken_job_outside_of_atomic_keeps_what_it_had_written(self):
        tasks.broken.enqueue("1")
        assert (len(run_due().failed), len(effects())) == (1, 1)

    def test_no_worker_is_left_behind(self):
        tasks.ship.enqueue("1")
        run_due()
        assert Worker.objects.count() == 0


@pytest.mark.django_db
def test_it_works_in_a_test_function_as_well():
    result = tasks.pay.enqueue("1")
    assert len(run_due()) == 2
    assert states(result) == ["succeeded"]
