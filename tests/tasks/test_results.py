"""Results: what Django documents about them, for jobs in any state and of any age."""

import asyncio
import copy
import json
import pickle
import threading
import uuid

import pytest
from django.db import connection, connections, transaction
from django.db.transaction import TransactionManagementError
from django.test import override_settings

from jobqueue import results as results_module
from jobqueue.compat import (
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
)
from jobqueue.conf import BACKEND_PATH
from jobqueue.engine.loading import MissingTask
from jobqueue.exceptions import TaskNotRegistered
from jobqueue.models import Job
from jobqueue.results import STATUS, JobResult
from jobqueue.states import State
from tests.tasks.making import add_attempt, insert_row, run, set_state
from tests.tasks.samples import add, echo, fetch, report, send

READY, RUNNING = TaskResultStatus.READY, TaskResultStatus.RUNNING
FAILED, SUCCESSFUL = TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL


def test_every_state_has_a_status():
    assert set(STATUS) == set(State)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("scheduled", READY),
        ("ready", READY),
        ("blocked", READY),
        ("retrying", READY),
        ("running", RUNNING),
        ("succeeded", SUCCESSFUL),
        ("dead", FAILED),
        ("cancelled", FAILED),
    ],
)
def test_the_status_follows_the_state_of_the_job(state, status):
    result = add.enqueue(1)
    job = set_state(result, state)
    for fresh in (add.get_result(result.id), asyncio_free_refresh(result)):
        assert isinstance(fresh, JobResult)
        assert isinstance(fresh, TaskResult)
        assert (fresh.status, fresh.job_state) == (status, state)
        assert fresh.finished_at == job.finished_at
        assert fresh.is_finished == (status in (FAILED, SUCCESSFUL))


def asyncio_free_refresh(result):
    result.refresh()
    return result


# --- identity ------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    "result_id", ["", "x", "123", None, 5, b"5", str(uuid.uuid4()), "\x00", []]
)
def test_an_id_that_is_none_of_ours_does_not_exist(result_id):
    for get in (add.get_result, task_backends["default"].get_result):
        with pytest.raises(TaskResultDoesNotExist):
            get(result_id)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")  # the caller's transaction is whole


@pytest.mark.django_db
def test_an_id_is_found_in_any_of_its_forms():
    result = add.enqueue(1)
    for form in (result.id, result.id.upper(), uuid.UUID(result.id), uuid.UUID(result.id).hex):
        assert add.get_result(form) == result


@pytest.mark.django_db
def test_a_result_of_another_task_is_a_mismatch_but_the_backend_has_it():
    result = add.enqueue(1)
    with pytest.raises(TaskResultMismatch):
        echo.get_result(result.id)
    assert task_backends["default"].get_result(result.id) == result


@pytest.mark.django_db
@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_results_can_be_copied_and_pickled(clone):
    result = report.using(tags=["x"]).enqueue({"a": [1]})
    add_attempt(result, "failed", error_class="builtins.ValueError", traceback="T")
    set_state(result, "dead", reason="out of attempts")
    loaded = report.get_result(result.id)
    assert clone(loaded) == loaded
    assert clone(loaded).job_state == "dead"


@pytest.mark.django_db
def test_a_result_is_frozen_and_a_copy_of_it_is_its_own():
    result = echo.enqueue([1])
    with pytest.raises(AttributeError):
        result.status = FAILED
    copy.deepcopy(result).args[0].append(2)
    assert result.args == [[1]]


# --- attempts ------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_worker_ids_are_of_the_attempts_that_were_charged_or_succeeded_and_of_the_running_one():
    result = add.enqueue(1)
    workers = {
        outcome: add_attempt(result, outcome, error_class="E")
        for outcome in ("failed", "lost", "snoozed", "timed_out")
    }
    job = set_state(result, "running", attempts=4, failures=2, fence=5)
    loaded = add.get_result(result.id)
    expected = [workers["failed"], workers["timed_out"], job.worker]
    assert loaded.worker_ids == [str(worker) for worker in expected]
    assert loaded.attempts == 3
    assert loaded.last_attempted_at == job.claimed_at
    assert loaded.started_at < loaded.last_attempted_at or loaded.started_at

    succeeded = add_attempt(result, "succeeded")
    set_state(result, "succeeded", worker=None, claimed_at=None, deadline=None, attempts=5)
    assert add.get_result(result.id).worker_ids[-1] == str(succeeded)
    assert add.get_result(result.id).attempts == 3


@pytest.mark.django_db
def test_errors_are_of_the_attempts_that_failed_as_text():
    result = add.enqueue(1)
    add_attempt(result, "failed", error_class="builtins.ValueError", traceback="Traceback: no")
    add_attempt(
        result, "lost", error_class="jobqueue.exceptions.WorkerLost", error_message="it died"
    )
    add_attempt(result, "snoozed")
    add_attempt(result, "succeeded")
    set_state(result, "succeeded", attempts=4, failures=1, fence=4)
    errors = add.get_result(result.id).errors
    assert [error.exception_class_path for error in errors] == [
        "builtins.ValueError",
        "jobqueue.exceptions.WorkerLost",
    ]
    assert errors[0].traceback == "Traceback: no"
    assert errors[0].exception_class is ValueError
    assert errors[1].traceback == "jobqueue.exceptions.WorkerLost: it died"


@pytest.mark.django_db
def test_a_job_that_died_without_an_attempt_still_has_its_error():
    result = add.enqueue(1)
    set_state(result, "dead", error_class="a.B", error_message="why", reason="undecodable row")
    loaded = add.get_result(result.id)
    assert [error.traceback for error in loaded.errors] == ["a.B: why"]
    assert loaded.reason == "undecodable row"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "value", [None, 0, "", "text", "123", "null", [], {"a": [1, 2.5, None]}, True, 1e22, "é\u2028"]
)
def test_a_return_value_comes_back_with_its_type(value):
    result = echo.enqueue(1)
    set_state(result, "succeeded", result=value)
    found = echo.get_result(result.id).return_value
    assert found == value
    assert type(found) is type(value)


@pytest.mark.django_db
def test_a_return_value_of_an_unfinished_or_failed_job_is_a_value_error():
    result = add.enqueue(1)
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value
    set_state(result, "dead")
    with pytest.raises(ValueError, match="failed"):
        _ = add.get_result(result.id).return_value


# --- what has changed since ----------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["tests.tasks.samples.removed", "no.such.module.task", "nodots"])
def test_a_job_of_a_task_that_is_gone_still_has_a_result(name):
    job = insert_row(task=name)
    result = task_backends["default"].get_result(job.pk)
    assert isinstance(result.task, MissingTask)
    assert result.task.module_path.removeprefix(".") == name
    assert (result.args, result.status) == ([1], READY)
    with pytest.raises(TaskNotRegistered, match=name):
        result.task.call(1)
    with pytest.raises(TaskNotRegistered, match=name):
        result.task.enqueue(1)
    result.refresh()
    assert copy.deepcopy(result).task.module_path == result.task.module_path
    assert pickle.loads(pickle.dumps(result)).task.module_path == result.task.module_path
    with pytest.raises(TaskResultMismatch):
        add.get_result(job.pk)


@pytest.mark.django_db
def test_a_job_whose_queue_or_alias_left_the_settings_still_has_a_result():
    job = insert_row(queue="retired", backend="renamed", priority=5)
    result = add.get_result(job.pk)
    assert (result.task.queue_name, result.task.priority) == ("retired", 5)
    assert (result.backend, result.task.backend) == ("renamed", "default")
    result.refresh()
    assert copy.deepcopy(result) == result


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [{"args": 5}, [], "text", {"args": [], "kwargs": []}, None])
def test_a_row_with_undecodable_arguments_still_has_a_result(arguments):
    job = insert_row()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobqueue_job SET arguments = %s WHERE task = %s",
            [json.dumps(arguments), job.task],
        )
    result = add.get_result(job.pk)
    assert (result.args, result.kwargs) == ([], {})


@pytest.mark.django_db
def test_arguments_of_an_older_signature_are_only_a_matter_of_the_worker():
    job = insert_row(arguments={"args": [], "kwargs": {"renamed_since": 1}})
    assert add.get_result(job.pk).kwargs == {"renamed_since": 1}


@pytest.mark.django_db
def test_changed_defaults_of_the_alias_do_not_change_a_job():
    result = add.enqueue(1)
    tasks = {"default": {"BACKEND": BACKEND_PATH, "OPTIONS": {"MAX_ATTEMPTS": 9, "TIMEOUT": 60}}}
    with override_settings(TASKS=tasks):
        task = add.get_result(result.id).task
    assert (task.max_attempts, task.timeout) == (5, 1_800)


# --- waiting -------------------------------------------------------------------------------------


def test_waiting_ends_when_the_job_has_ended(committing, monkeypatch):
    monkeypatch.setattr(results_module, "LAST_POLL_SECONDS", 0.02)
    result = echo.enqueue(1)
    thread = threading.Thread(target=_finish, args=[result])
    thread.start()
    assert result.wait().return_value == 42
    thread.join()
    assert result.is_finished
    assert result.wait(0).return_value == 42


def test_a_coroutine_waits_without_blocking_its_loop(committing):
    result = fetch.enqueue("u")

    async def caller():
        waiting = asyncio.ensure_future(result.wait_async(30))
        await asyncio.sleep(0)
        thread = threading.Thread(target=_finish, args=[result])
        thread.start()
        return (await waiting).return_value

    assert run(caller()) == 42


def _finish(result):
    Job.objects.filter(pk=result.id).update(
        state="succeeded", result=42, finished_at=result.enqueued_at
    )
    connections.close_all()


def test_waiting_gives_up_at_its_time_out(committing):
    result = add.enqueue(1)
    with pytest.raises(TimeoutError, match=result.id):
        result.wait(0.05)
    with pytest.raises(TimeoutError):
        result.wait(0)
    with pytest.raises(TimeoutError):
        run(result.wait_async(0.01))


def test_waiting_for_ever_inside_a_transaction_is_refused(committing):
    with transaction.atomic():
        result = add.enqueue(1)
        with pytest.raises(TransactionManagementError, match="does not start before"):
            result.wait()
        with pytest.raises(TimeoutError):
            result.wait(0.01)


def test_waiting_for_a_job_that_was_pruned_says_so(committing):
    result = add.enqueue(1)
    Job.objects.all().delete()
    with pytest.raises(TaskResultDoesNotExist):
        result.wait(5)
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


def test_the_pauses_between_looks_grow_to_their_limit():
    pauses = results_module._pauses(None, "x")
    seen = [next(pauses) for _ in range(30)]
    assert seen[0] == results_module.FIRST_POLL_SECONDS
    assert seen == sorted(seen)
    assert seen[-1] == results_module.LAST_POLL_SECONDS


def test_a_result_of_send_is_typed_for_its_task(committing):
    assert send.enqueue("a@b").task.takes_context
