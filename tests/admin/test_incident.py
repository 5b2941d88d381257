"""The incident of the pictures agrees with itself: whoever looks closely finds one story."""

import itertools
from collections import Counter

import pytest
from django.db import connection
from django.db.models import F, Q, Sum
from django.utils import timezone

from jobqueue.engine.audit import audit
from jobqueue.engine.bulk_walk import choice_of
from jobqueue.engine.rollup_windows import ENDED, FAILED
from jobqueue.engine.statistics import error_groups, worker_rates
from jobqueue.models import (
    Action,
    Attempt,
    BulkOperation,
    ErrorGroup,
    Job,
    Limit,
    LogLine,
    Progress,
    Queue,
    Rollup,
    Step,
    Worker,
)
from jobqueue.states import State
from jobqueue.storage import storage_for
from project.pictures import story
from project.pictures.course import Course
from project.pictures.incident import write

pytestmark = pytest.mark.django_db


def test_every_page_tells_the_same_story():
    """One incident for all claims, of a shop with fewer orders: it takes a second to make."""
    course = Course(timezone.now(), order_seconds=20.0)
    keys = write(course, range(1, len(course.orders) + 1), lease_seconds=3_600.0)
    counts_agree()
    attempts_agree_with_their_jobs()
    nothing_started_where_nothing_could()
    the_limit_held()
    operations_count_what_they_did()
    the_job_of_the_pictures_is_told_in_order(Job.objects.get(pk=keys["job"]))
    rows_lie_in_the_order_of_time()
    assert {rate.name for rate in worker_rates()} == {
        worker.name for worker in Worker.objects.filter(dead=False)
    }
    violations = audit(storage_for(connection))
    assert [one for one in violations if one.check != "stuck"] == []  # nobody goes on from here


def counts_agree():
    dead = Counter(Job.objects.filter(state="dead").values_list("error_fingerprint", flat=True))
    failed = Counter(
        Attempt.objects.exclude(error_class="").values_list("error_fingerprint", flat=True)
    )
    groups = error_groups(86_400.0).groups
    assert {group.fingerprint: group.dead.value for group in groups} == {
        fingerprint: dead[fingerprint] for fingerprint in failed
    }
    assert dict(ErrorGroup.objects.values_list("fingerprint", "count")) == failed
    for kind, column in (("task", "task"), ("worker", "worker")):
        sums = Rollup.objects.filter(kind=kind, seconds=60).values_list("name")
        found = dict(sums.annotate(n=Sum(ENDED)).order_by())
        ended = Counter(Attempt.objects.values_list(column, flat=True))
        assert found == {getattr(name, "hex", name): n for name, n in ended.items()}
    errors = Rollup.objects.filter(kind="error", seconds=3_600).aggregate(n=Sum(FAILED))["n"]
    assert errors == failed.total()


def attempts_agree_with_their_jobs():
    numbers = Counter(Attempt.objects.values_list("job_id", flat=True))
    ends = dict(Attempt.objects.order_by("number").values_list("job_id", "finished_at"))
    for job in Job.objects.defer("arguments"):
        assert job.attempts == numbers[job.pk]
        if job.state in (State.SUCCEEDED, State.DEAD):
            assert job.finished_at == ends[job.pk]
    assert not Attempt.objects.filter(
        Q(started_at__lt=F("due_at")) | Q(finished_at__lt=F("started_at"))
    )
    charged = Attempt.objects.filter(outcome="succeeded").exclude(error_class="")
    assert not charged


def nothing_started_where_nothing_could():
    paused = Queue.objects.get(paused=True)
    assert not Attempt.objects.filter(queue=paused.name, started_at__gt=paused.paused_at)
    outage = ErrorGroup.objects.get(fingerprint=story.NO_MAIL.fingerprint)
    mails = Attempt.objects.filter(task=story.MAIL, started_at__gte=outage.first_seen)
    assert not mails.filter(outcome="succeeded")
    for worker in Worker.objects.all():
        runs = Attempt.objects.filter(worker=worker.pk)
        assert not runs.filter(started_at__lt=worker.started_at)
        running = Job.objects.filter(worker=worker.pk, state="running")
        assert len(running) <= worker.slots
        if worker.dead:
            assert not running
            assert not runs.filter(started_at__gt=worker.heartbeat_at)


def the_limit_held():
    limit = Limit.objects.get()
    mails = Attempt.objects.filter(task=story.MAIL, finished_at__gt=limit.set_at)
    times = mails.values_list("started_at", "finished_at")
    running = list(Job.objects.filter(task=story.MAIL, state="running"))
    for at in [start for start, _end in times if start > limit.set_at]:
        begun = sum(job.claimed_at <= at for job in running)
        assert begun + sum(start <= at < end for start, end in times) <= limit.running


def operations_count_what_they_did():
    operations = list(BulkOperation.objects.order_by("id"))
    assert {operation.state for operation in operations} == {"finished", "failed"}
    for operation in operations:
        action = Action.objects.get(pk=operation.action)
        assert action.count == operation.seen == sum(operation.counts.values())
        assert action.target == f"bulk operation {operation.pk}"
        left = choice_of(operation).jobs("default").count()
        assert left + operation.seen == operation.total


def the_job_of_the_pictures_is_told_in_order(job):
    runs = list(Attempt.objects.filter(job_id=job.pk).order_by("number"))
    first, last = runs[0], runs[-1]
    for before, after in itertools.pairwise(runs):
        assert before.finished_at < after.started_at
    (requeued,) = Action.objects.filter(job_id=job.pk).values_list("at", flat=True)
    assert runs[story.MAX_ATTEMPTS - 1].finished_at < requeued < runs[
        story.MAX_ATTEMPTS
    ].due_at or (requeued == runs[story.MAX_ATTEMPTS].due_at)
    for line in LogLine.objects.filter(job_id=job.pk):
        assert line.fence == last.fence
        assert last.started_at <= line.logged_at <= last.finished_at
    (step,) = Step.objects.filter(job_id=job.pk)
    assert first.started_at <= step.recorded_at <= first.finished_at
    (progress,) = Progress.objects.filter(job_id=job.pk)
    assert last.started_at <= progress.reported_at <= last.finished_at


def rows_lie_in_the_order_of_time():
    for rows, time in (
        (Job.objects.order_by("id"), "enqueued_at"),
        (Attempt.objects.order_by("id"), "finished_at"),
        (Action.objects.order_by("id"), "at"),
        (BulkOperation.objects.order_by("id"), "began_at"),
    ):
        times = list(rows.values_list(time, flat=True))
        assert times == sorted(times)
