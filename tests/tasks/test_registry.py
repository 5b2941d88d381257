"""The registry: what a worker may import, and what it finds there (faults of names and imports)."""

import sys
import types

import pytest
from django.test import override_settings

from jobqueue.compat import Task
from jobqueue.conf import BACKEND_PATH, options_for
from jobqueue.engine.registry import may_import
from jobqueue.exceptions import TaskNotRegistered
from jobqueue.tasks import JobTask, autodiscover, registry
from tests.tasks import samples


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """The registry as it is in a process that has imported nothing yet."""
    monkeypatch.setattr(registry, "_tasks", {})
    monkeypatch.setattr(registry, "_misses", {})


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A package on the path, named in IMPORTS; returns a function that writes its modules."""
    package = tmp_path / "someproject"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    def write(module, text):
        (package / f"{module}.py").write_text(text)

    tasks = {
        "default": {"BACKEND": BACKEND_PATH, "OPTIONS": {"IMPORTS": ["someproject.jobs"]}},
        "dummy": {"BACKEND": "django.tasks.backends.dummy.DummyBackend"},
    }
    if not Task.__module__.startswith("django.tasks"):
        tasks["dummy"]["BACKEND"] = "django_tasks.backends.dummy.DummyBackend"
    with override_settings(TASKS=tasks):
        yield write
    for name in [name for name in sys.modules if name.split(".")[0] == "someproject"]:
        del sys.modules[name]


GOOD = """
from jobqueue import task

@task
def work():
    return 1
"""


def test_autodiscovery_imports_the_tasks_of_the_apps_and_the_imports(project):
    project("jobs", GOOD)
    sys.modules.pop("tests.app.tasks", None)
    autodiscover(options_for("default"))
    assert registry.names() == [
        "someproject.jobs.work",
        "tests.app.tasks.record",
        "tests.app.tasks.record_then_fail",
    ]
    assert {task.name for task in registry} == {"work", "record", "record_then_fail"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_module", ModuleNotFoundError),
        ("def broken(:", SyntaxError),
        ("1 / 0", ZeroDivisionError),
    ],
)
def test_a_broken_module_raises_its_own_error(project, text, error):
    project("jobs", text)
    with pytest.raises(error) as caught:
        autodiscover(options_for("default"))
    if error is not SyntaxError:
        assert str(caught.traceback[-1].path).endswith("jobs.py")


def test_a_missing_import_is_an_error_too(project):
    with pytest.raises(ModuleNotFoundError):
        autodiscover(options_for("default"))


def test_a_task_is_found_by_importing_its_module_once(project):
    project("jobs", GOOD)
    found = registry.get("someproject.jobs.work")
    assert found.call() == 1
    assert registry.get("someproject.jobs.work") is found


def test_a_task_made_by_the_frameworks_own_decorator_is_found_as_ours(project):
    package = Task.__module__.split(".base")[0]
    project("jobs", f"from {package} import task\n@task(backend='dummy')\ndef work(): return 1")
    found = registry.get("someproject.jobs.work")
    assert isinstance(found, JobTask)
    assert found.call() == 1
    assert registry.names() == ["someproject.jobs.work"]


def test_a_task_that_moved_is_found_at_its_old_path_if_an_import_was_left_there(project):
    project("moved", GOOD)
    project("jobs", "from someproject.moved import work")
    old, new = registry.get("someproject.jobs.work"), registry.get("someproject.moved.work")
    assert old is new
    assert registry.names() == ["someproject.jobs.work", "someproject.moved.work"]
    assert list(registry) == [new]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("someproject.jobs.helper", "no task 'helper'"),
        ("someproject.jobs.missing", "no task 'missing'"),
        ("someproject.elsewhere.work", "neither in an installed app"),
        ("os.system", "neither in an installed app"),
        ("__main__.work", "neither in an installed app"),
        ("tests.app.__main__.work", "neither in an installed app"),
        ("tests.app.no_such_module.work", "importing its module failed"),
        ("work", "neither in an installed app"),
        ("", "neither in an installed app"),
        ("..", "neither in an installed app"),
        ("tests.app.tasks; import os.x", "neither in an installed app"),
    ],
)
def test_what_is_no_task_is_not_registered_and_says_why(project, name, reason):
    project("jobs", "def helper(): ...")
    for _ in range(2):
        with pytest.raises(TaskNotRegistered, match=reason):
            registry.get(name)
    assert registry.names() == []


def test_a_module_that_fails_to_import_fails_its_own_jobs_only(project):
    project("jobs", "raise RuntimeError('half deployed')")
    with pytest.raises(TaskNotRegistered, match="half deployed") as caught:
        registry.get("someproject.jobs.work")
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert registry.get("tests.app.tasks.record").name == "record"


def test_a_name_looked_for_in_vain_is_not_imported_again(project, monkeypatch):
    with pytest.raises(TaskNotRegistered):
        registry.get("someproject.jobs.work")
    project("jobs", GOOD)
    with pytest.raises(TaskNotRegistered):
        registry.get("someproject.jobs.work")
    registry.forget_misses()
    assert registry.get("someproject.jobs.work").name == "work"


def test_a_name_that_registers_later_is_no_longer_missing(project):
    with pytest.raises(TaskNotRegistered):
        registry.get("someproject.jobs.work")
    project("jobs", GOOD)
    __import__("someproject.jobs")
    assert registry.get("someproject.jobs.work").name == "work"


def test_names_looked_for_in_vain_are_bounded(monkeypatch):
    monkeypatch.setattr("jobqueue.engine.registry.MAX_REMEMBERED_MISSES", 3)
    for n in range(10):
        with pytest.raises(TaskNotRegistered):
            registry.get(f"no.such.task{n}")
    assert len(registry._misses) <= 3


def test_a_variant_made_by_using_does_not_replace_the_task():
    registry.add(samples.add)
    samples.add.using(priority=7)
    assert registry.get("tests.tasks.samples.add").priority == 0


def test_a_new_function_of_the_same_name_replaces_the_old_one(project):
    project("jobs", GOOD)
    old = registry.get("someproject.jobs.work")
    del sys.modules["someproject.jobs"]
    __import__("someproject.jobs")
    new = registry.get("someproject.jobs.work")
    assert new.func is not old.func
    assert new.func is sys.modules["someproject.jobs"].work.func


def test_modules_of_apps_and_imports_may_be_imported_and_no_others(project):
    assert may_import("tests.app.tasks")
    assert may_import("tests.app")
    assert may_import("someproject.jobs")
    assert may_import("someproject.jobs.deeper")
    assert not may_import("someproject")
    assert not may_import("tests.application.tasks")
    assert not may_import("subprocess")


def test_a_module_attribute_that_is_no_task_does_not_count(project, monkeypatch):
    module = types.ModuleType("someproject.jobs")
    module.work = lambda: 1
    monkeypatch.setitem(sys.modules, "someproject.jobs", module)
    with pytest.raises(TaskNotRegistered, match="no task 'work'"):
        registry.get("someproject.jobs.work")
