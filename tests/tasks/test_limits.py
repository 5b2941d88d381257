"""The limit of a task, and the key that each job gets from it."""

import pytest

from jobqueue import Limit, Unique, task
from jobqueue.compat import InvalidTask
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Job
from tests.tasks import samples

pytestmark = pytest.mark.django_db

PATH = "tests.tasks.test_limits"


def sync(customer_id, region="eu", *, deep=False, **rest): ...


def with_context(context, order_id): ...


def key_of(limit, *args, function=sync, given=None, **kwargs):
    """Return the key in the row of a job that was enqueued with these arguments."""
    made_task = task(limit=limit)(function).using(limit_key=given)
    return Job.objects.get(pk=made_task.enqueue(*args, **kwargs).id).limit_key


@pytest.mark.parametrize(
    ("limit", "key"),
    [
        (None, None),
        (3, f"{PATH}.sync"),
        ({"running": 3}, f"{PATH}.sync"),
        (Limit(3, name="api"), "api"),
        (Limit(3, key="mailgun"), "mailgun"),
        (Limit(3, key="customer:{customer_id}"), "customer:42"),
        (Limit(3, key="customer:{customer_id}", name="crm"), "crm:customer:42"),
        (Limit(3, key="{customer_id}"), f"{PATH}.sync:42"),
        (Limit(3, key="{region}/{deep}", name="region"), "region:eu/False"),
        (Limit(3, key="{rest[rest_of_it][0]}", name="x"), "x:a"),
        (Limit(3, key=lambda customer_id, **kw: customer_id % 10, name="shard"), "shard:2"),
        (Limit(3, key=lambda customer_id, **kw: None, name="shard"), None),
        (Limit(3, key=lambda *args, **kw: "", name="shard"), "shard:"),
    ],
    ids=repr,
)
def test_the_key_comes_from_the_name_and_the_arguments(limit, key):
    assert key_of(limit, 42, rest_of_it=["a"]) == key


def test_the_context_is_no_argument():
    limit = Limit(1, key="order:{order_id}")
    assert task(limit=limit, takes_context=True)(with_context).key_for([7], {}) == "order:7"


@pytest.mark.parametrize(
    ("limit", "given", "key"),
    [
        (Limit(1, name="tenant"), "acme", "tenant:acme"),
        (Limit(1, key="customer:{customer_id}"), "7", "customer:7"),
        (Limit(1, key="customer:{customer_id}"), "customer:7", "customer:7"),
        (1, "acme", f"{PATH}.sync:acme"),
    ],
    ids=repr,
)
def test_text_may_be_given_instead(limit, given, key):
    assert key_of(limit, 42, given=given) == key


def test_each_of_many_jobs_has_its_own_key():
    made_task = task(limit=Limit(1, key="customer:{customer_id}"))(sync)
    made_task.enqueue_many([made_task.bind(n) for n in (3, 1, 2)])
    keys = Job.objects.order_by("id").values_list("limit_key", flat=True)
    assert list(keys) == ["customer:3", "customer:1", "customer:2"]


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        (0, "1 to 1,000,000"),
        (True, "whole number"),
        (1.5, "number of jobs"),
        ("3", "number of jobs"),
        ({"running": 1, "most": 2}, "most"),
        ({}, "needs a number"),
        ({"rate": 5}, "belong together"),
        ({"running": 1, "per": 5}, "belong together"),
        ({"rate": 5, "per": 0}, "0.1 to"),
        ({"rate": 5, "per": "1m"}, "seconds"),
        ({"rate": 0, "per": 1}, "rate is 1"),
        ({"running": 1, "key": 5}, "text or a callable"),
        ({"running": 1, "key": "{customer_id"}, "expected '}'"),
        ({"running": 1, "key": "queue:{customer_id}"}, "as those of queues are"),
        ({"running": 1, "name": "queue"}, "as those of queues are"),
        ({"running": 1, "name": "a:b"}, "without a colon"),
        ({"running": 1, "name": "a\x00b"}, "cannot be stored"),
        ({"running": 1, "key": "order:{order}"}, "does not take"),
    ],
    ids=repr,
)
def test_a_limit_that_means_nothing_is_refused_where_it_is_defined(limit, says):
    def no_such(customer_id): ...

    no_such.__qualname__ = "no_such"
    with pytest.raises(InvalidTask, match=says):
        task(limit=limit)(no_such)


def test_a_key_that_cannot_be_stored_is_refused_before_any_row():
    for bad in ("x" * 300, "a\x00b", "\ud800"):
        limit = Limit(1, key=lambda customer_id, bad=bad: bad)
        with pytest.raises(InvalidArgument, match="key of a limit"):
            key_of(limit, 42)
    assert Job.objects.count() == 0


@pytest.mark.parametrize("given", ["", "x" * 256, 5, "a\x00b"])
def test_a_given_key_that_cannot_be_one_is_refused(given):
    with pytest.raises(InvalidTask, match="limit_key is text"):
        task(limit=1)(sync).using(limit_key=given)


def test_a_key_without_a_limit_is_refused():
    with pytest.raises(InvalidTask, match="needs a task with a limit"):
        samples.add.using(limit_key="acme")


def test_a_job_whose_arguments_are_replaced_has_the_key_of_the_new_ones():
    limit = Limit(1, key="region:{region}")
    unique = Unique(key=("customer_id",), on_conflict="replace")
    made_task = task(limit=limit, unique=unique)(sync)
    job_id = made_task.enqueue(42).id
    Job.objects.filter(pk=job_id).update(state="blocked", reason="limit")  # region:eu is full
    assert made_task.enqueue(42, region="us").id == job_id
    job = Job.objects.get(pk=job_id)
    assert (job.limit_key, job.state, job.reason) == ("region:us", "ready", "")
    Job.objects.filter(pk=job_id).update(state="blocked", reason="limit")
    made_task.enqueue(42, region="us", deep=True)
    assert Job.objects.get(pk=job_id).state == "blocked"
