"""Jobs in every state, and what lies around them, for the admin's pages."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Permission, User

from jobqueue.ids import new_identity, new_job_id
from jobqueue.models import (
    Action,
    Attempt,
    BulkOperation,
    ErrorGroup,
    Job,
    JobTag,
    Limit,
    LogLine,
    Progress,
    Queue,
    Schedule,
    Step,
    Worker,
)
from jobqueue.states import FINISHED, State

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TRACEBACK = """Traceback (most recent call last):
  File "/srv/venv/lib/python3.12/site-packages/jobqueue/engine/execution.py", line 10, in run
    call()
  File "/srv/shop/tasks.py", line 42, in send_receipt
    order = Order.objects.get(pk=order_id)
shop.models.NoSuchOrder: no such order
"""
FINGERPRINT = "5f" * 16


def job(state: str = "ready", **changes: Any) -> Job:
    """Store a job in a state."""
    running, ended, dead = state == State.RUNNING, state in FINISHED, state == State.DEAD
    ran = running or ended
    fields = {
        "id": new_job_id(),
        "backend": "default",
        "task": "tests.app.tasks.record",
        "queue": "default",
        "state": state,
        "arguments": {"args": [42], "kwargs": {"password": "hunter2"}},
        "run_at": NOW,
        "rank": 0,
        "enqueued_at": NOW,
        "max_attempts": 5,
        "timeout": 60.0,
        "attempts": int(ended),
        "failures": int(dead),
        "fence": int(ran),
        "worker": new_identity() if running else None,
        "claimed_at": NOW if running else None,
        "deadline": NOW + timedelta(hours=1) if running else None,
        "finished_at": NOW if ended else None,
        "reason": "unknown task" if state == State.BLOCKED else "out of attempts" * dead,
        "error_class": "shop.models.NoSuchOrder" if dead else "",
        "error_message": "no such order" if dead else "",
        "error_fingerprint": FINGERPRINT if dead else "",
    }
    return Job.objects.create(**fields | changes)


def attempt(of: Job, number: int = 1, **changes: Any) -> Attempt:
    """Store an attempt of a job."""
    fields = {
        "job_id": of.pk,
        "number": number,
        "fence": number,
        "worker": new_identity(),
        "task": of.task,
        "queue": of.queue,
        "outcome": "failed",
        "charged": True,
        "due_at": NOW,
        "started_at": NOW,
        "finished_at": NOW + timedelta(seconds=3),
        "error_class": "shop.models.NoSuchOrder",
        "error_message": "no such order",
        "error_fingerprint": FINGERPRINT,
        "traceback": TRACEBACK,
    }
    return Attempt.objects.create(**fields | changes)


def worker(**changes: Any) -> Worker:
    """Store a worker that lives."""
    now = datetime.now(UTC)
    fields = {
        "id": new_identity(),
        "kind": "worker",
        "name": "web-1",
        "host": "web",
        "pid": 42,
        "backend": "default",
        "version": "1.0",
        "slots": 4,
        "started_at": now,
        "heartbeat_at": now,
        "lease_until": now + timedelta(minutes=1),
    }
    return Worker.objects.create(**fields | changes)


def around(of: Job) -> None:
    """Store one of everything that a page of a job shows."""
    attempt(of)
    JobTag.objects.create(job_id=of.pk, tag="order:42")
    Step.objects.create(job_id=of.pk, name="charge", result={"id": 7}, fence=1, recorded_at=NOW)
    Progress.objects.create(
        job_id=of.pk, fence=1, done=3, total=10, message="three of ten", reported_at=NOW
    )
    LogLine.objects.create(
        job_id=of.pk,
        fence=1,
        number=1,
        logged_at=NOW,
        level=40,
        logger="shop",
        message="it failed\nTraceback of it",
    )
    Action.objects.create(
        at=NOW, actor="kim", surface="shell", verb="requeue", job_id=of.pk, target=str(of.pk)
    )


def everything() -> dict[str, Any]:
    """Store a row of every model; return those that have pages, by the model's name."""
    dead = job("dead")
    around(dead)
    now = datetime.now(UTC)
    ErrorGroup.objects.create(
        fingerprint=FINGERPRINT,
        error_class="shop.models.NoSuchOrder",
        message="no such order",
        count=3,
        first_seen=now - timedelta(hours=2),
        last_seen=now,
        job_id=dead.pk,
        task=dead.task,
        queue=dead.queue,
    )
    Queue.objects.create(
        name="mail", paused=True, paused_at=NOW, paused_by="kim", paused_reason="spam"
    )
    Limit.objects.create(key="customer", running=2, code_running=3, source="app", set_by="kim")
    schedule = Schedule.objects.create(
        name="nightly", task="tests.app.tasks.record", cron="0 6 * * *"
    )
    operation = BulkOperation.objects.create(
        backend="default",
        verb="requeue",
        filter="state:dead",
        actor="kim",
        surface="admin",
        action=1,
        began_at=NOW,
        stepped_at=NOW,
        total=10,
        seen=4,
        counts={"requeued": 3, "skipped: running": 1},
    )
    return {
        "job": dead.pk,
        "attempt": Attempt.objects.get().pk,
        "errorgroup": FINGERPRINT,
        "queue": "mail",
        "limit": "customer",
        "schedule": schedule.pk,
        "bulkoperation": operation.pk,
        "worker": worker().pk,
        "action": Action.objects.get().pk,
    }


def staff(name: str = "kim", *permissions: str) -> User:
    """Return a member of staff with these permissions of jobqueue's, by codename."""
    user = User.objects.create_user(name, is_staff=True)
    found = Permission.objects.filter(content_type__app_label="jobqueue", codename__in=permissions)
    user.user_permissions.set(found)
    assert len(found) == len(permissions), "each is one of ours"
    return user


def page(model: str, key: Any = None, *rest: str) -> str:
    """Return the address of a list, or of one row's page."""
    parts = ["", "admin", "jobqueue", model]
    if key is not None:
        parts += [str(key), *(rest or (() if key in ("add", "submit") else ("change",)))]
    return "/".join(parts) + "/"


def ids(*jobs: Job) -> list[UUID]:
    return [each.pk for each in jobs]
