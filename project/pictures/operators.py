"""What operators did in the incident, and what the one job tells that a page is shown of.

Each action lies where `story` says, and counts what `course` made of it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from jobqueue.filters import Filter, term
from jobqueue.limits import queue_key
from jobqueue.models import (
    Action,
    BulkOperation,
    Limit,
    LogLine,
    Progress,
    Queue,
    Schedule,
    Step,
    Tick,
    Worker,
)
from jobqueue.states import State
from project.pictures import story
from project.pictures.course import Course
from project.pictures.lives import Life
from project.pictures.story import Failure

STEP_SECONDS = 1.4
"""From the begin of an operation until its first step, the only one that was carried out."""
RETRIES_SECONDS = 2 + 4 + 8 + 16
"""Between the first step that failed and the last."""
STOPPED_BY = "OperationalError: canceling statement due to statement timeout"


def write(course: Course) -> dict[str, Any]:
    """Write all of it, as it happened; return the keys of what has pages."""
    assert course.tried is not None
    tried = course.tried
    _schedule(course)
    _discard(course)
    _act("kim", "requeue", course.ago(story.TRIED), str(tried.id), job_id=tried.id)
    _told(tried)
    reason = "card gateway is being switched over"
    paused = course.ago(story.PAUSED)
    _act("kim", "pause", paused, story.PAUSED_QUEUE, reason=reason)
    Queue.objects.create(
        name=story.PAUSED_QUEUE,
        paused=True,
        paused_at=paused,
        paused_by="kim",
        paused_reason=reason,
    )
    _limit(course)
    report = next(life for life in course.lives if life.by)
    _act("lee", "run_schedule", course.ago(story.REPORTED), story.SCHEDULE, job_id=report.id)
    _report(course, report)
    operation = _requeue(course)
    leaving = Worker.objects.get(pk=course.worker(story.LEAVING).id)
    _act("kim", "drain", course.ago(story.DRAINED), str(leaving), worker=str(leaving.pk))
    return {
        "job": tried.id,
        "bulkoperation": operation.pk,
        "schedule": Schedule.objects.get(name=story.SCHEDULE).pk,
    }


def _act(
    actor: str, verb: str, at: datetime, target: str, job_id: Any = None, **detail: Any
) -> Action:
    return Action.objects.create(
        at=at,
        actor=actor,
        surface="page" if actor == "lee" else "admin",
        verb=verb,
        target=target,
        job_id=job_id,
        detail=detail or None,
    )


def _limit(course: Course) -> None:
    at, key = course.ago(story.LIMITED), queue_key(story.QUEUES[story.MAIL])
    _act("kim", "set_limit", at, key, running=story.LIMIT, reason=story.LIMITED_WHY)
    Limit.objects.create(
        key=key, running=story.LIMIT, set_by="kim", set_at=at, set_reason=story.LIMITED_WHY
    )


# --- bulk operations ------------------------------------------------------------------------------


def _dead(failure: Failure) -> str:
    return str(Filter((term("state", "dead"), term("fingerprint", failure.fingerprint))))


def _bulk(verb: str, began: datetime, done: int, chosen: str, **given: Any) -> BulkOperation:
    """Begin an operation that was lee's, with its Action row, which counts what it has done."""
    parameters = given.pop("parameters")
    action = _act("lee", f"bulk {verb}", began, "", filter=chosen, parameters=parameters)
    operation = BulkOperation.objects.create(
        backend="default",
        verb=verb,
        filter=chosen,
        parameters=parameters,
        actor="lee",
        surface="page",
        action=action.pk,
        began_at=began,
        stepped_at=began + timedelta(seconds=STEP_SECONDS),
        seen=done,
        **given,
    )
    action.target, action.count = f"bulk operation {operation.pk}", done
    action.save()
    return operation


def _discard(course: Course) -> None:
    began, done = course.ago(story.DISCARDED), len(course.discarded)
    _bulk(
        "discard",
        began - timedelta(seconds=STEP_SECONDS),
        done,
        _dead(story.NO_KETTLES),
        parameters={"reason": story.DISCARDED_WHY},
        total=done,
        counts={"discarded": done},
        state="finished",
        walked=True,
        ended_at=began,
    )


def _requeue(course: Course) -> BulkOperation:
    stepped, done = course.ago(story.REQUEUED), len(course.requeued)
    failed = stepped + timedelta(seconds=RETRIES_SECONDS)
    return _bulk(
        "requeue",
        stepped - timedelta(seconds=STEP_SECONDS),
        done,
        _dead(story.NO_MAIL),
        parameters={"spread": story.SPREAD_SECONDS},
        total=course.to_requeue,
        counts={"requeued": done},
        state="failed",
        cursor=course.requeued[-1].id,
        paced_from=stepped,
        failures=5,
        error=STOPPED_BY,
        wait_until=failed + timedelta(seconds=32),
    )


# --- schedule -------------------------------------------------------------------------------------


def _schedule(course: Course) -> None:
    schedule = Schedule.objects.create(
        name=story.SCHEDULE,
        task=story.REPORT,
        cron="30 2 * * *",
        time_zone="Europe/Paris",
        overlap="skip",
    )
    nights = [life for life in course.lives if life.tick is not None]
    for life in nights:
        Tick.objects.create(
            schedule=schedule,
            tick=life.tick,
            at=life.enqueued_at,
            outcome="enqueued",
            job_id=life.id,
        )
    last = nights[-1].tick
    assert last is not None
    rows = Schedule.objects.filter(pk=schedule.pk)  # what schedulers alone write
    rows.update(
        created_at=course.ago(30 * story.DAY), last_tick=last, look_at=last + timedelta(days=1)
    )


def _report(course: Course, report: Life) -> None:
    """Say how far the report is that runs now."""
    assert report.state == State.RUNNING
    Progress.objects.create(
        job_id=report.id,
        fence=1,
        done=2,
        total=len(story.SKUS),
        message=f"{story.SKUS[1]} counted",
        reported_at=course.now - timedelta(seconds=20),
    )


# --- one job --------------------------------------------------------------------------------------


def _told(life: Life) -> None:
    """Write what a dead letter recorded in its first attempt, and logged in its last."""
    first, last, fence = life.runs[0], life.runs[-1], len(life.runs)
    Step.objects.create(
        job_id=life.id,
        name="render receipt",
        result={"template": "receipt.txt", "bytes": 2_411},
        fence=1,
        recorded_at=first.started_at + timedelta(seconds=0.2),
    )
    ran = last.finished_at - last.started_at
    Progress.objects.create(
        job_id=life.id,
        fence=fence,
        done=2,
        total=3,
        message="sending",
        reported_at=last.started_at + 0.3 * ran,
    )
    lines = [
        (0.1, 20, "receipt was rendered before: 2,411 bytes"),
        (0.3, 20, "connecting to mx.provider.example"),
        (0.98, 40, "connection closed before the message was taken"),
    ]
    LogLine.objects.bulk_create(
        LogLine(
            job_id=life.id,
            fence=fence,
            number=number,
            logged_at=last.started_at + share * ran,
            level=level,
            logger="project.shop.mail",
            message=text,
        )
        for number, (share, level, text) in enumerate(lines, 1)
    )
