"""A shop whose mail provider has failed: jobs in every state, and what lies around them.

Rows are written straight into the tables, as they would be after some hours of real work: those
of `course`, in the order in which they would have been written. Rollups and error groups are
counted from them by the engine itself, so that no number is there twice. Nothing here needs a
worker. `build` may be called once on an empty database.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connections
from django.utils import timezone

from jobqueue.admin import home
from jobqueue.conf import options_for
from jobqueue.engine.rollups import catch_up
from jobqueue.models import Attempt, Job, JobTag, Worker
from jobqueue.states import FINISHED, State
from jobqueue.storage import storage_for
from project.pictures import PASSWORD, USER, operators, story
from project.pictures.course import Course
from project.pictures.lives import Life, Run, outcomes

NOTICED = timedelta(seconds=15)
"""From a worker's last beat until it is known to be dead."""
RESULTS = {story.STOCK: {"reserved": 1}, story.REPORT: dict.fromkeys(story.SKUS, 0)}


def build(lease_seconds: float) -> dict[str, Any]:
    """Write it all, with the shop's orders and a user; return what `write` does.

    lease_seconds: for how long the workers live by their rows; nobody renews them.
    """
    from project.pictures import orders

    course = Course(timezone.now())
    get_user_model().objects.create_superuser(USER, password=PASSWORD)
    return write(course, orders.write(course), lease_seconds)


def write(course: Course, orders: Sequence[int], lease_seconds: float) -> dict[str, Any]:
    """Write what jobqueue has of it; return the keys of the rows that have pages.

    orders: their keys, the oldest first.
    """
    assert course.tried is not None
    assert course.tried.order is not None
    _workers(course, lease_seconds)
    _jobs(course, orders)
    catch_up(storage_for(connections[home.database()], options_for(home.alias())))
    keys = operators.write(course)
    return keys | {
        "attempt": Attempt.objects.filter(job_id=keys["job"]).latest("number").pk,
        "worker": course.worker(story.LEFT_OUT).id,
        "alive": [each.id for each in course.workers if each.crew.died is None],
        "errorgroup": story.NO_MAIL.fingerprint,
        "queue": story.PAUSED_QUEUE,
        "order": orders[course.tried.order],
        "dead": len(course.dead(story.NO_MAIL)),
    }


# --- workers and jobs ---------------------------------------------------------------------------


def _workers(course: Course, lease_seconds: float) -> None:
    for number, slots in enumerate(course.workers):
        crew, is_dead = slots.crew, slots.crew.died is not None
        beat = slots.ended_at if is_dead else course.now - timedelta(seconds=1 + number)
        assert beat is not None
        dead_at = beat + NOTICED
        Worker.objects.create(
            id=slots.id,
            kind="worker",
            name=crew.name,
            host=crew.host,
            pid=crew.pid,
            backend="default",
            version=crew.version,
            queues=list(crew.queues),
            slots=crew.slots,
            started_at=course.ago(crew.started),
            heartbeat_at=beat,
            lease_until=dead_at if is_dead else beat + timedelta(seconds=lease_seconds),
            draining=crew.drained is not None,
            dead=is_dead,
            dead_at=dead_at if is_dead else None,
            dead_reason=story.DEATH if is_dead else "",
        )


def _jobs(course: Course, orders: Sequence[int]) -> None:
    """Write jobs and their tags as they were enqueued, and attempts as they ended."""
    lives = course.lives
    Job.objects.bulk_create((_job(life, orders) for life in lives), batch_size=500)
    JobTag.objects.bulk_create(
        JobTag(job_id=life.id, tag=f"order:{orders[life.order]}")
        for life in lives
        if life.order is not None
    )
    Attempt.objects.bulk_create((_attempt(*each) for each in outcomes(lives)), batch_size=500)


def _job(life: Life, orders: Sequence[int]) -> Job:
    is_running, is_over = life.state == State.RUNNING, life.state in FINISHED
    failure = None if life.state == State.SUCCEEDED else life.failure
    timeout = 1_800.0 if life.task == story.REPORT else story.TIMEOUT_SECONDS
    args = [] if life.order is None else [orders[life.order]]
    return Job(
        id=life.id,
        backend="default",
        task=life.task,
        queue=life.queue,
        state=life.state.value,
        arguments={"args": args, "kwargs": {}},
        run_at=life.due_at,
        rank=int(life.due_at.timestamp() * 1_000_000),
        enqueued_at=life.enqueued_at,
        max_attempts=story.MAX_ATTEMPTS,
        timeout=timeout,
        attempts=len(life.runs),
        failures=life.failures,
        fence=len(life.runs) + is_running,
        worker=life.worker.id if life.worker else None,
        claimed_at=life.claimed_at,
        deadline=life.claimed_at + timedelta(seconds=timeout) if life.claimed_at else None,
        finished_at=life.finished_at if is_over else None,
        result=RESULTS.get(life.task) if life.state == State.SUCCEEDED else None,
        error_class=failure.error_class if failure else "",
        error_message=failure.message if failure else "",
        error_fingerprint=failure.fingerprint if failure else "",
        reason=life.reason,
        schedule=story.SCHEDULE if life.task == story.REPORT else "",
        tick=life.tick,
        created_by=life.by,
    )


def _attempt(life: Life, number: int, run: Run) -> Attempt:
    failure = run.failure
    return Attempt(
        job_id=life.id,
        number=number,
        fence=number,
        worker=run.worker,
        task=life.task,
        queue=life.queue,
        outcome=failure.outcome.value if failure else "succeeded",
        charged=failure is not None and failure is not story.LOST,
        due_at=run.due_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        error_class=failure.error_class if failure else "",
        error_message=failure.message if failure else "",
        error_fingerprint=failure.fingerprint if failure else "",
        traceback=failure.traceback if failure else "",
    )
