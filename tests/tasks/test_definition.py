"""What may be a task, and what its options may say: refused where it is defined."""

import copy
import functools
import pickle
from datetime import timedelta

import pytest

from jobqueue import Backoff, JobTask, task
from jobqueue.compat import InvalidTask, Task, TaskContext
from jobqueue.tasks import registry
from tests.tasks import samples
from tests.tasks.making import run


def plain(n): ...


async def coroutine(n): ...


def with_context(context, n): ...


def without_context(n): ...


def generator():
    yield 1


async def async_generator():
    yield 1


class Holder:
    def method(self): ...

    @staticmethod
    def static(): ...


def nested():
    def inner(): ...

    return inner


def unwrapped(function):
    def wrapper(*args):
        return function(*args)

    return wrapper


def as_script(function):
    """Return `function` as if it were defined in the script that is running."""
    clone = functools.update_wrapper(lambda: None, function)
    clone.__module__ = "__main__"
    return clone


def with_long_name():
    def function(): ...

    function.__qualname__ = "f" * 300
    return function


@pytest.fixture(autouse=True)
def _keep_registry(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))


# --- functions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: None, "module level"),
        (nested(), "module level"),
        (unwrapped(plain), r"functools\.wraps"),
        (Holder.method, "module level"),
        (Holder.static, "module level"),
        (as_script(plain), "script that is running"),
        (generator, "generator"),
        (async_generator, "generator"),
        (functools.partial(plain, 1), "plain function"),
        (Holder, "plain function"),
        (print, "plain function"),
        (5, "plain function"),
        (with_long_name(), "longer than 255"),
    ],
    ids=repr,
)
def test_a_function_that_a_worker_cannot_run_is_refused(function, message):
    with pytest.raises(InvalidTask, match=message):
        task(function)


def test_a_refused_function_is_not_registered():
    with pytest.raises(InvalidTask):
        task(max_attempts=0)(plain)
    assert f"{__name__}.plain" not in registry.names()


@pytest.mark.parametrize("decorate", [task, task()])
def test_the_decorator_works_with_and_without_parentheses(decorate):
    made = decorate(plain)
    assert isinstance(made, JobTask)
    assert isinstance(made, Task)
    assert made.func is plain
    assert made.module_path == f"{__name__}.plain"
    assert made.name == "plain"
    assert registry.get(made.module_path) is made


def test_a_function_decorated_with_wraps_is_a_task():
    assert samples.doubled.module_path == "tests.tasks.samples.doubled"
    assert samples.doubled.call(4) == 8


def test_a_context_must_be_the_first_parameter():
    assert task(takes_context=True)(with_context).takes_context
    with pytest.raises(InvalidTask, match="context"):
        task(takes_context=True)(without_context)


# --- options -------------------------------------------------------------------------------------


def test_a_task_without_options_leaves_everything_to_its_alias():
    made = task(plain)
    assert (made.max_attempts, made.retry, made.timeout) == (None, None, None)
    assert (made.priority, made.queue_name, made.backend) == (0, "default", "default")
    assert made.atomic
    assert made.on_crash == "retry"
    assert made.expose == frozenset()
    assert made.tags == ()


def test_options_are_kept_in_one_form():
    made = task(
        max_attempts="unlimited",
        retry={"base": 60, "factor": 1},
        timeout=timedelta(minutes=2),
        atomic=False,
        on_crash="bury",
        expose=["api", "staff"],
        tags=["a", "b", "a"],
    )(plain)
    assert made.max_attempts == "unlimited"
    assert made.retry == Backoff(base=60, factor=1)
    assert made.timeout == 120
    assert not made.atomic
    assert made.on_crash == "bury"
    assert made.expose == {"staff", "api"}
    assert made.tags == ("a", "b")


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": None},
        {"max_attempts": True},
        {"max_attempts": 1.5},
        {"max_attempts": "forever"},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": "30"},
        {"timeout": timedelta(days=400)},
        {"timeout": float("nan")},
        {"soft_timeout": 0},
        {"soft_timeout": 30, "timeout": 30},
        {"soft_timeout": 40, "timeout": timedelta(seconds=30)},
        {"retry": 5},
        {"retry": {"bse": 1}},
        {"retry": {"base": -1}},
        {"atomic": 1},
        {"on_crash": "ignore"},
        {"expose": "staff"},
        {"expose": {"everyone"}},
        {"expose": 5},
        {"expose": [[]]},
        {"tags": [[]]},
        {"tags": 5},
        {"tags": "order:42"},
        {"tags": [""]},
        {"tags": [5]},
        {"tags": ["a\x00b"]},
        {"tags": ["\ud800"]},
        {"tags": ["x" * 101]},
        {"tags": [str(n) for n in range(33)]},
        {"priority": 101},
        {"priority": -101},
        {"priority": 0.5},
        {"queue_name": ""},
        {"queue_name": "no such queue"},
        {"queue_name": 5},
    ],
    ids=ascii,
)
def test_an_option_out_of_range_is_refused(options):
    with pytest.raises(InvalidTask) as caught:
        task(**options)(plain)
    assert next(iter(options)).removesuffix("_name")[:3].lower() in str(caught.value).lower()


def test_run_after_is_of_a_job_and_not_of_a_task():
    with pytest.raises(TypeError, match="using"):
        task(run_after=timedelta(1))(plain)


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="max_atempts"):
        task(max_atempts=3)(plain)


def test_a_coroutine_is_not_atomic_and_cannot_be_made_so():
    made = task(coroutine)
    assert made.is_async
    assert not made.atomic
    assert not task(atomic=False)(coroutine).atomic
    with pytest.raises(InvalidTask, match=r"context\.commit"):
        task(atomic=True)(coroutine)


# --- values --------------------------------------------------------------------------------------


def test_tasks_are_equal_if_function_and_options_are():
    assert samples.add.using() == samples.add
    assert hash(samples.add.using()) == hash(samples.add)
    assert samples.add.using(priority=5) != samples.add
    assert samples.add.using(priority=5) == samples.add.using(priority=5)
    assert len({samples.add, samples.add.using(), samples.echo}) == 2


def test_a_task_with_an_unhashable_retry_policy_can_be_hashed():
    class Policy:
        __hash__ = None

        def __call__(self, number, exception):
            return 1

    assert hash(task(retry=Policy())(plain))


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_a_copy_keeps_every_option(clone):
    original = samples.report.using(
        priority=5, run_after=timedelta(days=1), max_attempts=3, tags=["x"], queue_name="mail"
    )
    assert clone(original) == original
    assert clone(samples.fetch).is_async


def test_a_task_that_is_not_at_its_path_cannot_be_unpickled():
    pickled = pickle.dumps(task(plain))
    with pytest.raises(ValueError, match=r"Expected .*plain.* to point to a Task instance"):
        pickle.loads(pickled)


def test_a_task_cannot_be_changed():
    with pytest.raises(AttributeError):
        samples.add.timeout = 5
    assert not hasattr(samples.add, "__dict__")


def test_calling_runs_the_function_here():
    assert samples.add.call(1, b=2) == 3
    assert samples.fetch.call("u") == "U"
    context = TaskContext(task_result=None)
    assert samples.send.call(context, "a@b") == "hello a@b"
    assert samples.names.call(task=1, self=2, args=3) == [1, None, 2, 3, None, None, None]


def test_calling_from_a_coroutine():
    async def caller():
        assert await samples.add.acall(1, b=2) == 3
        assert await samples.fetch.acall("u") == "U"
        assert await samples.names.acall(self=2, func=3) == [None, None, 2, None, None, None, 3]

    run(caller())


@pytest.mark.parametrize(
    "policy", [Backoff, lambda: 1.0, lambda number: 1.0, lambda a, b, c: 1.0, int, "soon"]
)
def test_a_retry_policy_that_cannot_be_called_as_one_is_refused_where_it_is_given(policy):
    with pytest.raises(InvalidTask, match="retry must"):
        task(retry=policy)(plain)


@pytest.mark.parametrize(
    "policy", [Backoff(), lambda number, exception: 1.0, lambda *args: 1.0, lambda n, e=None: 1.0]
)
def test_a_retry_policy_may_be_any_callable_of_number_and_exception(policy):
    assert task(retry=policy)(plain).retry is policy
