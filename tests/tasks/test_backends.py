"""The backend as the framework sees it, and the doubles that carry our options and ignore them."""

import sys
import types
from datetime import timedelta

import pytest
from django.apps import apps
from django.core import checks
from django.test import override_settings
from django.utils import timezone

from jobqueue import JobTask, compat, task
from jobqueue.backend import JobQueueBackend
from jobqueue.compat import BaseTaskBackend, InvalidTask, Task, task_backends
from jobqueue.conf import BACKEND_PATH
from jobqueue.exceptions import InvalidOptions
from jobqueue.tasks import registry
from tests.tasks import samples

FRAMEWORK = Task.__module__.split(".base")[0]
DOUBLES = {
    "default": {"BACKEND": BACKEND_PATH, "QUEUES": ["default", "mail"]},
    "immediate": {"BACKEND": "jobqueue.backend.ImmediateBackend"},
    "dummy": {"BACKEND": "jobqueue.backend.DummyBackend"},
    "their_immediate": {"BACKEND": f"{FRAMEWORK}.backends.immediate.ImmediateBackend"},
    "their_dummy": {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"},
    "any_queue": {"BACKEND": BACKEND_PATH, "QUEUES": []},
}
their_task = sys.modules[Task.__module__].task


def work(n=0, **kwargs):
    return n


@pytest.fixture(autouse=True)
def _doubles(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))
    with override_settings(TASKS=DOUBLES):
        yield


def test_the_backend_says_what_it_supports():
    backend = task_backends["default"]
    assert isinstance(backend, JobQueueBackend)
    assert isinstance(backend, BaseTaskBackend)
    assert backend.is_jobqueue
    assert backend.task_class is JobTask
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority


def test_the_doubles_are_not_taken_for_the_real_one():
    for alias in set(DOUBLES) - {"default", "any_queue"}:
        assert not getattr(task_backends[alias], "is_jobqueue", False)


def test_wrong_options_do_not_stop_imports_but_the_first_job():
    tasks = {"default": {"BACKEND": BACKEND_PATH, "OPTIONS": {"TIMEOUT": -1}}}
    with override_settings(TASKS=tasks):
        made = task(work)
        with pytest.raises(InvalidOptions, match="TIMEOUT"):
            made.enqueue(1)


def test_an_alias_without_queues_takes_any_that_can_be_stored():
    made = task(backend="any_queue", queue_name="some queue")(work)
    assert made.queue_name == "some queue"
    for name in ("", "q" * 129, "a\x00b", "\ud800", 5, None):
        with pytest.raises(InvalidTask, match="queue_name"):
            task(backend="any_queue", queue_name=name)(work)


def test_a_queue_that_the_alias_has_not_is_refused_with_those_it_has():
    queues = {"default": {"BACKEND": BACKEND_PATH, "QUEUES": ["stock", "mail"]}}
    says = r"Queue 'male' is not in QUEUES of TASKS\['default'\], which has mail, stock."
    with override_settings(TASKS=queues), pytest.raises(InvalidTask, match=says):
        task(queue_name="male")(work)


@pytest.mark.django_db
def test_the_frameworks_own_decorator_makes_our_tasks_with_the_defaults():
    made = their_task(work)
    assert isinstance(made, JobTask)
    assert made == task(work)
    assert made.enqueue(5).args == [5]
    assert their_task(priority=5, queue_name="mail", takes_context=False)(work).priority == 5


@pytest.mark.skipif(
    compat.django.VERSION[:2] == (6, 0), reason="Django 6.0's own @task takes no other keywords"
)
def test_the_frameworks_own_decorator_passes_our_options_on():
    made = their_task(max_attempts=3, timeout=timedelta(seconds=9), tags=["a"])(work)
    assert (made.max_attempts, made.timeout, made.tags) == (3, 9, ("a",))


@pytest.mark.parametrize("alias", ["immediate", "dummy", "their_immediate", "their_dummy"])
def test_our_options_are_carried_and_ignored_by_other_backends(alias):
    made = task(
        backend=alias, max_attempts=3, retry={"base": 1}, timeout=5, atomic=False,
        on_crash="bury", expose={"staff"}, tags=["a"],
    )(work)  # fmt: skip
    assert isinstance(made, JobTask)
    result = made.enqueue(7)
    assert result.args == [7]
    assert result.task.max_attempts == 3
    assert [r.args for r in made.enqueue_many([made.bind(1), ((2,), {})])] == [[1], [2]]
    assert result.is_finished == ("immediate" in alias)


@pytest.mark.parametrize("alias", ["immediate", "dummy"])
def test_the_tolerant_doubles_take_any_queue_and_any_run_after(alias):
    made = task(backend=alias, queue_name="mail", priority=5)(work)
    for run_after in (timedelta(hours=1), now()):
        result = made.using(run_after=run_after).enqueue(7)
        assert result.args == [7]
    assert task_backends[alias].task_class is JobTask


@pytest.mark.parametrize("alias", ["immediate", "dummy", "default"])
def test_a_time_out_of_range_is_refused_by_the_doubles_too(alias):
    with pytest.raises(ValueError, match="run_after"):
        task(backend=alias)(work).using(run_after=timedelta.max)


def test_a_delay_becomes_a_time_for_a_backend_that_knows_no_delays():
    made = task(backend="their_dummy")(work).using(run_after=timedelta(hours=1))
    assert made.run_after > now()
    assert made.enqueue(1).task.run_after == made.run_after


def test_keywords_of_any_name_reach_the_function_under_the_immediate_backends():
    for alias in ("immediate", "their_immediate"):
        result = samples.names.using(backend=alias).enqueue(self=1, task=2, func=3)
        assert result.return_value == [2, None, 1, None, None, None, 3]


@pytest.mark.django_db
def test_a_plain_task_of_another_backend_can_be_enqueued_here_with_the_defaults():
    plain = their_task(backend="their_dummy")(samples.add.func).using(backend="default")
    assert not isinstance(plain, JobTask)
    result = plain.enqueue(1)
    assert isinstance(result.task, JobTask)
    assert samples.add.get_result(result.id).args == [1]


def test_a_task_of_ours_can_be_used_with_a_double():
    assert samples.add.using(backend="immediate").enqueue(1, b=2).return_value == 3
    assert samples.fetch.using(backend="immediate").enqueue("u").return_value == "U"


# --- checks --------------------------------------------------------------------------------------


def test_the_checks_of_the_alias_are_asked_for(monkeypatch):
    message = checks.Warning("seen", id="jobqueue.W999")
    module = types.ModuleType("jobqueue.checks")
    module.check_backend = lambda backend: [message] if backend.alias == "default" else []
    monkeypatch.setitem(sys.modules, "jobqueue.checks", module)
    assert task_backends["default"].check() == [message]
    if apps.is_installed(FRAMEWORK) or compat.django.VERSION >= (6, 0):
        assert message in checks.run_checks()


def test_an_error_inside_the_checks_is_not_swallowed(monkeypatch):
    def import_module(name):
        raise ModuleNotFoundError("No module named 'missing'", name="missing")

    monkeypatch.setattr("jobqueue.backend.importlib.import_module", import_module)
    with pytest.raises(ModuleNotFoundError):
        task_backends["default"].check()


def now():

    return timezone.now()
