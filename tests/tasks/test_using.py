"""`using()`: other options for one enqueue, checked at once; times as Django documents them."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from django.utils import timezone

from jobqueue import JobTask
from jobqueue.compat import InvalidTask
from jobqueue.exceptions import InvalidRunAfter
from jobqueue.models import Job
from tests.tasks.samples import add, report

MOMENT = datetime(2030, 5, 1, 12, tzinfo=UTC)


def test_none_leaves_an_option_as_it_is():
    assert report.using(priority=None, tags=None, run_after=None) == report


def test_every_option_of_one_enqueue_can_be_changed():
    changed = add.using(
        priority=-5, queue_name="mail", run_after=MOMENT, max_attempts="unlimited", tags={"a"}
    )
    assert isinstance(changed, JobTask)
    assert (changed.priority, changed.queue_name, changed.run_after) == (-5, "mail", MOMENT)
    assert (changed.max_attempts, changed.tags) == ("unlimited", ("a",))
    assert add.queue_name == "default"


def test_tags_replace_those_of_the_task():
    assert report.using(tags=["x"]).tags == ("x",)
    assert report.using(tags=[]).tags == ()


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 101},
        {"queue_name": "nowhere"},
        {"queue_name": "q" * 129},
        {"max_attempts": 0},
        {"tags": "order:1"},
    ],
    ids=str,
)
def test_an_option_out_of_range_is_refused(options):
    with pytest.raises(InvalidTask):
        add.using(**options)


def test_an_unknown_backend_is_refused():
    from jobqueue.compat import InvalidTaskBackend

    with pytest.raises(InvalidTaskBackend):
        add.using(backend="nowhere")


@pytest.mark.parametrize(
    "run_after",
    [
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
        datetime.max.replace(tzinfo=ZoneInfo("America/New_York")),
        datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo")),
        timedelta.max,
        timedelta.min,
        timedelta(days=-400 * 365),
        timedelta(days=9_000 * 365),
        5,
        1.5,
        "tomorrow",
        date(2030, 1, 1),
    ],
    ids=repr,
)
def test_a_time_out_of_range_is_refused_with_a_clear_error(run_after):
    with pytest.raises(InvalidRunAfter, match="run_after"):
        add.using(run_after=run_after)


def test_a_naive_time_is_refused_where_the_project_has_zones():
    with pytest.raises(InvalidTask, match="aware"):
        add.using(run_after=datetime(2030, 1, 1))  # noqa: DTZ001


@pytest.mark.django_db
def test_a_time_becomes_the_jobs():
    tokyo = MOMENT.astimezone(ZoneInfo("Asia/Tokyo"))
    result = add.using(run_after=tokyo).enqueue(1)
    job = Job.objects.get(pk=result.id)
    assert (job.state, job.run_at) == ("scheduled", MOMENT)
    assert result.task.run_after == MOMENT
    assert add.get_result(result.id).task.run_after == MOMENT


@pytest.mark.django_db
def test_a_delay_counts_from_the_enqueue_on_the_databases_clock():
    later = add.using(run_after=timedelta(hours=1))
    result = later.enqueue(1)
    job = Job.objects.get(pk=result.id)
    assert job.state == "scheduled"
    assert abs(job.run_at - job.enqueued_at - timedelta(hours=1)) < timedelta(milliseconds=2)
    assert result.task.run_after == job.run_at
    assert later.run_after == timedelta(hours=1)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "past", [timedelta(0), timedelta(seconds=-5), datetime(1980, 1, 1, tzinfo=UTC)]
)
def test_a_time_that_has_passed_means_now(past):
    result = add.using(run_after=past).enqueue(1)
    assert result.job_state == "ready"
    assert result.task.run_after is None
    assert Job.objects.get(pk=result.id).rank > 0


@pytest.mark.django_db
def test_without_zones_a_naive_time_is_of_the_projects_default_zone():
    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Paris"):
        task = add.using(run_after=datetime(2030, 5, 1, 14))  # noqa: DTZ001
        result = task.enqueue(1)
    stored = Job.objects.get(pk=result.id).run_at
    assert timezone.make_aware(stored, UTC) if timezone.is_naive(stored) else stored == MOMENT


@pytest.mark.django_db
def test_options_reach_the_row():
    result = report.using(queue_name="mail", priority=7, max_attempts=2, tags=["b", "a"]).enqueue()
    job = Job.objects.get(pk=result.id)
    assert (job.queue, job.priority, job.max_attempts) == ("mail", 7, 2)
    assert job.on_crash == "bury"
    assert add.get_result(add.enqueue(1).id).task == add
    assert report.get_result(result.id).task.tags == ("b", "a")


@pytest.mark.django_db
def test_unlimited_attempts_are_null_in_the_row_and_the_default_is_the_aliass():
    unlimited = add.using(max_attempts="unlimited").enqueue(1)
    assert Job.objects.get(pk=unlimited.id).max_attempts is None
    assert add.get_result(unlimited.id).task.max_attempts == "unlimited"
    assert Job.objects.get(pk=add.enqueue(1).id).max_attempts == 5
