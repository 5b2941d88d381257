"""`expires`: a job that does not start in time is cancelled, and says so."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.test import override_settings

from jobqueue import task
from jobqueue.compat import task_finished
from jobqueue.exceptions import InvalidExpires
from jobqueue.models import Job
from jobqueue.testing import eager, run_due
from tests.tasks.samples import add
from tests.tasks.uniques import push, rebuild, sync

MOMENT = datetime(2030, 5, 1, 12, tzinfo=UTC)
PAST = datetime(2020, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@task(expires=MINUTE)
def fresh():
    return "fresh"


@pytest.mark.django_db
def test_a_delay_counts_from_the_enqueue_on_the_databases_clock():
    result = fresh.enqueue()
    job = Job.objects.get(pk=result.id)
    assert abs(job.expires_at - job.enqueued_at - MINUTE) < timedelta(milliseconds=2)
    assert result.task.expires == job.expires_at
    assert fresh.get_result(result.id).task.expires == job.expires_at


@pytest.mark.django_db
def test_a_time_becomes_the_jobs():
    result = add.using(expires=MOMENT).enqueue(1)
    assert Job.objects.get(pk=result.id).expires_at == MOMENT
    assert result.task.expires == MOMENT


@pytest.mark.django_db
def test_a_job_without_one_never_expires():
    assert Job.objects.get(pk=add.enqueue(1).id).expires_at is None


@pytest.mark.parametrize(
    "expires",
    [
        timedelta(0),
        -MINUTE,
        timedelta.max,
        datetime(1969, 12, 31, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime(2030, 1, 1),  # noqa: DTZ001
        60,
        "soon",
        date(2030, 1, 1),
    ],
    ids=repr,
)
def test_what_is_no_time_to_come_is_refused(expires):
    with pytest.raises(InvalidExpires, match="expires must be"):
        add.using(expires=expires)


@pytest.mark.parametrize(
    ("run_after", "expires"),
    [(MINUTE, MINUTE), (MOMENT, MOMENT - MINUTE), (timedelta(days=3_650), MOMENT)],
    ids=repr,
)
def test_a_job_that_has_expired_before_it_may_start_is_refused(run_after, expires):
    with pytest.raises(InvalidExpires, match="behind it"):
        add.using(run_after=run_after, expires=expires)


def test_a_task_has_no_fixed_time_to_expire():
    with pytest.raises(TypeError, match=r"using\(expires"):
        task(expires=MOMENT)


@pytest.mark.django_db
@override_settings(USE_TZ=False, TIME_ZONE="Europe/Paris")
def test_without_zones_a_naive_time_is_of_the_projects_default_zone():
    result = add.using(expires=datetime(2030, 5, 1, 14)).enqueue(1)  # noqa: DTZ001
    stored = Job.objects.get(pk=result.id).expires_at
    assert stored.replace(tzinfo=UTC) in (MOMENT, MOMENT + timedelta(hours=2))


@pytest.mark.django_db
def test_an_expired_job_is_told_of_as_cancelled_and_is_not_run():
    told = []

    def hear(sender, task_result, **kwargs):
        told.append((task_result.id, task_result.job_state, task_result.reason))

    late, in_time = add.using(expires=PAST).enqueue(1), add.enqueue(2)
    task_finished.connect(hear)
    try:
        report = run_due()
    finally:
        task_finished.disconnect(hear)
    assert [job.id for job in report.jobs] == [in_time.id]
    assert told[0] == (late.id, "cancelled", "expired")


@pytest.mark.django_db
def test_an_eager_job_expires_alike():
    with eager() as jobs:
        late = add.using(expires=PAST).enqueue(1)
        fresh.enqueue()
    assert [(job.job_state, job.reason) for job in jobs] == [
        ("cancelled", "expired"),
        ("succeeded", ""),
    ]
    assert late.is_finished


# --- unique jobs ----------------------------------------


@pytest.mark.django_db
def test_a_twin_that_will_never_start_takes_no_other_request_with_it():
    first = sync.using(expires=PAST).enqueue(1)
    second = sync.enqueue(1)
    assert (second.id != first.id, second.already_enqueued) == (True, False)
    assert Job.objects.get(pk=first.id).reason == "expired"
    run_due()
    assert sync.get_result(second.id).job_state == "succeeded"


@pytest.mark.django_db
def test_it_is_told_of_once_the_enqueue_has_committed(django_capture_on_commit_callbacks):
    finished = []

    def hear(task_result, **kwargs):
        finished.append(task_result.id)

    task_finished.connect(hear)
    try:
        first = sync.using(expires=PAST).enqueue(1)
        with django_capture_on_commit_callbacks(execute=True):
            sync.enqueue(1)
            assert finished == []
    finally:
        task_finished.disconnect(hear)
    assert finished == [first.id]


@pytest.mark.django_db
@pytest.mark.parametrize("task", [push, rebuild], ids=["replace", "reschedule"])
def test_a_twin_that_is_changed_gets_the_new_expiry_instead(task):
    first = task.using(expires=PAST).enqueue(1)
    assert task.enqueue(1).id == first.id
    run_due()
    assert task.get_result(first.id).job_state == "succeeded"
