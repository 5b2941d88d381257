"""A shop whose mail provider has failed: jobs in every state, and what lies around them.

Rows are written straight into the tables, as they would be after some hours of real work; nothing
here needs a worker. `build` may be called once on an empty database.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model

from jobqueue.ids import new_identity, new_job_id
from jobqueue.models import (
    Action,
    Attempt,
    BulkOperation,
    ErrorGroup,
    Job,
    JobTag,
    LogLine,
    Progress,
    Queue,
    Rolling,
    Rollup,
    Schedule,
    Step,
    Tick,
    Worker,
)
from project.pictures import PASSWORD, USER
from project.shop.models import Charge, Order

TIMED_OUT = "9c41e7b2d05f4a83b6127e90c3d8f51a"
NO_ORDER = "40b8d16f7ce2915a3d04fb62ea7790c8"
DECLINED = "e73a058c61d94f2eb81f2c5096a4d37b"
ERRORS = {
    TIMED_OUT: (
        "smtplib.SMTPServerDisconnected",
        "Connection unexpectedly closed by mx.provider.example while sending receipt",
        "project.shop.tasks.send_receipt",
        "mail",
    ),
    NO_ORDER: (
        "project.shop.models.Order.DoesNotExist",
        "Order matching query does not exist.",
        "project.shop.tasks.reserve_stock",
        "stock",
    ),
    DECLINED: (
        "project.shop.payments.Declined",
        "card declined: insufficient funds",
        "project.shop.tasks.charge_card",
        "payments",
    ),
}
TRACEBACK = """Traceback (most recent call last):
  File "/srv/venv/lib/python3.12/site-packages/jobqueue/engine/execution.py", line 212, in call
    return function(*args, **kwargs)
  File "/srv/shop/project/shop/tasks.py", line 96, in send_receipt
    mail.send(order.email, receipt_for(order))
  File "/srv/shop/project/shop/mail.py", line 31, in send
    provider.deliver(message)
  File "/srv/venv/lib/python3.12/site-packages/provider/client.py", line 118, in deliver
    self._connection.sendmail(*message.envelope)
  File "/usr/local/lib/python3.12/smtplib.py", line 405, in getreply
    raise SMTPServerDisconnected("Connection unexpectedly closed")
smtplib.SMTPServerDisconnected: Connection unexpectedly closed by mx.provider.example
"""
REPORT = "project.shop.reports.report_sales"
TASKS = {
    "project.shop.tasks.reserve_stock": "stock",
    "project.shop.tasks.charge_card": "payments",
    "project.shop.tasks.send_receipt": "mail",
    REPORT: "default",
}


def build(dead: int = 340, seed: int = 1) -> dict[str, Any]:
    """Write it all; return the keys of the rows that have pages."""
    chance = random.Random(seed)
    now = datetime.now(UTC)
    get_user_model().objects.create_superuser(USER, password=PASSWORD)
    workers = [_worker(n, now) for n in range(3)]
    orders = [_order(n) for n in range(40)]
    jobs = _jobs(chance, now, workers, orders)
    letters = _dead(chance, now, dead)
    job = _worst(letters[TIMED_OUT][-1], orders[0], workers[0], now)
    _errors(now, letters)
    _rollups(chance, now, workers, letters)
    Queue.objects.create(
        name="payments",
        paused=True,
        paused_at=now - timedelta(minutes=7),
        paused_by="kim",
        paused_reason="card gateway is being switched over",
    )
    schedule = _schedule(now, jobs[0])
    operation = _operation(now)
    return {
        "job": job.pk,
        "attempt": Attempt.objects.filter(job_id=job.pk).latest("number").pk,
        "worker": workers[0].pk,
        "alive": [worker.pk for worker in workers],
        "schedule": schedule.pk,
        "bulkoperation": operation.pk,
        "errorgroup": TIMED_OUT,
        "queue": "payments",
        "order": orders[0].pk,
    }


def _worker(number: int, now: datetime) -> Worker:
    return Worker.objects.create(
        id=new_identity(),
        kind="worker",
        name=f"worker-{number + 1}",
        host=f"app{number // 2 + 1}",
        pid=4_100 + number,
        backend="default",
        version="2026.11.30" if number else "2026.11.28",
        queues=[] if number else ["mail", "default"],
        slots=4,
        started_at=now - timedelta(hours=9),
        heartbeat_at=now,
        lease_until=now + timedelta(hours=2),
        draining=number == 2,
    )


def _order(number: int) -> Order:
    return Order.objects.create(
        sku=f"tea-{number % 7}",
        quantity=1 + number % 3,
        email="kim@example.com",
        amount_cents=1_990,
    )


def _id_of(enqueued_at: datetime) -> UUID:
    """Return an id as it would have been drawn then: lists are sorted by it."""
    tail = new_job_id().int & ((1 << 80) - 1)
    return UUID(int=int(enqueued_at.timestamp() * 1_000) << 80 | tail)


def _row(now: datetime, task: str, state: str, /, **changes: Any) -> Job:
    ended = state in ("succeeded", "dead", "cancelled")
    fields: dict[str, Any] = {
        "id": _id_of(now),
        "backend": "default",
        "task": task,
        "queue": TASKS[task],
        "state": state,
        "arguments": {"args": [] if task == REPORT else [42], "kwargs": {}},
        "run_at": now,
        "rank": int(now.timestamp() * 1_000_000),
        "enqueued_at": now,
        "max_attempts": 8,
        "timeout": 30.0,
        "finished_at": now if ended else None,
        "attempts": int(ended),
        "fence": int(ended),
    }
    return Job(**fields | changes)


def _jobs(chance: random.Random, now: datetime, workers: list[Worker], orders: Any) -> list[Job]:
    jobs = []
    for order in orders:
        task = chance.choice(list(TASKS))
        at = now - timedelta(seconds=chance.randrange(5, 900))
        state = chance.choice(["succeeded", "ready", "retrying", "scheduled", "succeeded"])
        later = state in ("retrying", "scheduled")
        changes: dict[str, Any] = {}
        if task != REPORT or state == "retrying":  # which is made one of another task
            changes["arguments"] = {"args": [order.pk], "kwargs": {}}
        if later:
            changes["run_at"] = now + timedelta(seconds=chance.randrange(30, 4_000))
        if state == "retrying":
            error = ERRORS[TIMED_OUT]
            changes |= {
                "task": error[2],
                "queue": "mail",
                "attempts": 2,
                "failures": 2,
                "fence": 2,
                "error_class": error[0],
                "error_message": error[1],
                "error_fingerprint": TIMED_OUT,
            }
        jobs.append(_row(at, task, state, **changes))
    for number, worker in enumerate(workers[:2]):
        claimed = now - timedelta(seconds=20 + number)
        jobs.append(
            _row(
                now - timedelta(minutes=1),
                REPORT,
                "running",
                worker=worker.pk,
                fence=1,
                claimed_at=claimed,
                deadline=claimed + timedelta(minutes=30),
            )
        )
    jobs.append(
        _row(
            now - timedelta(hours=1),
            "project.shop.tasks.send_receipt",
            "blocked",
            task="project.shop.tasks.send_newsletter",
            reason="unknown task",
        )
    )
    Job.objects.bulk_create(jobs)
    ran = [job for job in jobs if job.state in ("succeeded", "retrying")]
    ran.sort(key=lambda job: job.enqueued_at)  # their attempts are stored as they end
    Attempt.objects.bulk_create(_attempt(job, workers[0], job.attempts or 1) for job in ran)
    JobTag.objects.bulk_create(
        JobTag(job_id=job.pk, tag=f"order:{order.pk}")
        for job, order in zip(jobs, orders, strict=False)
    )
    return jobs


def _attempt(job: Job, worker: Worker, number: int, **changes: Any) -> Attempt:
    failed = job.state != "succeeded"
    fields: dict[str, Any] = {
        "job_id": job.pk,
        "number": number,
        "fence": number,
        "worker": worker.pk,
        "task": job.task,
        "queue": job.queue,
        "outcome": "failed" if failed else "succeeded",
        "charged": failed,
        "due_at": job.enqueued_at,
        "started_at": job.enqueued_at + timedelta(seconds=1),
        "finished_at": job.enqueued_at + timedelta(seconds=2.4),
        "error_class": job.error_class,
        "error_message": job.error_message,
        "error_fingerprint": job.error_fingerprint,
        "traceback": TRACEBACK if failed else "",
    }
    return Attempt(**fields | changes)


def _dead(chance: random.Random, now: datetime, count: int) -> dict[str, list[Job]]:
    letters: dict[str, list[Job]] = {fingerprint: [] for fingerprint in ERRORS}
    for number in range(count):
        fingerprint = TIMED_OUT if number % 10 else chance.choice([NO_ORDER, DECLINED])
        error_class, message, task, queue = ERRORS[fingerprint]
        died = now - timedelta(seconds=(count - number) * 9)
        letters[fingerprint].append(
            _row(
                died - timedelta(minutes=5),
                task,
                "dead",
                queue=queue,
                finished_at=died,
                attempts=8,
                failures=8,
                fence=8,
                reason="out of attempts",
                error_class=error_class,
                error_message=message,
                error_fingerprint=fingerprint,
                arguments={"args": [1_000 + number], "kwargs": {}},
            )
        )
    Job.objects.bulk_create(job for jobs in letters.values() for job in jobs)
    return letters


def _worst(job: Job, order: Order, worker: Worker, now: datetime) -> Job:
    """Give one dead letter all that a job's page shows."""
    for number in range(1, 9):
        start = job.enqueued_at + timedelta(seconds=30 * number)
        due, end = start - timedelta(seconds=0.4), start + timedelta(seconds=5)
        times = {"due_at": due, "started_at": start, "finished_at": end}
        Attempt.objects.bulk_create([_attempt(job, worker, number, **times)])
    Step.objects.create(
        job_id=job.pk,
        name="render receipt",
        result={"template": "receipt.txt", "bytes": 2_411},
        fence=1,
        recorded_at=job.enqueued_at + timedelta(seconds=31),
    )
    Progress.objects.create(
        job_id=job.pk, fence=8, done=2, total=3, message="sending", reported_at=now
    )
    for number, (level, text) in enumerate(
        [(20, "rendering receipt"), (20, "connecting to mx.provider.example"), (40, "no answer")], 1
    ):
        LogLine.objects.create(
            job_id=job.pk,
            fence=8,
            number=number,
            logged_at=now - timedelta(seconds=90 - number),
            level=level,
            logger="project.shop.mail",
            message=text,
        )
    Action.objects.create(
        at=job.enqueued_at + timedelta(seconds=200),
        actor="kim",
        surface="admin",
        verb="requeue",
        job_id=job.pk,
        target=str(job.pk),
    )
    Charge.objects.create(order=order, job_id=job.pk, receipt="ch_8213", amount_cents=1_990)
    JobTag.objects.create(job_id=job.pk, tag=f"order:{order.pk}")
    return job


def _errors(now: datetime, letters: dict[str, list[Job]]) -> None:
    for fingerprint, jobs in letters.items():
        error_class, message, task, queue = ERRORS[fingerprint]
        ErrorGroup.objects.create(
            fingerprint=fingerprint,
            error_class=error_class,
            message=message,
            count=sum(_hourly(len(jobs))),
            first_seen=now - timedelta(hours=3),
            last_seen=jobs[-1].finished_at or now,
            job_id=jobs[-1].pk,
            task=task,
            queue=queue,
        )


def _hourly(jobs: int) -> list[int]:
    """Return how many attempts of dead letters failed in each hour, the newest first."""
    return [round(jobs * 8 * share) for share in (0.55, 0.3, 0.1, 0.05)]


def _rollups(
    chance: random.Random, now: datetime, workers: list[Worker], letters: dict[str, list[Job]]
) -> None:
    minute = now.replace(second=0, microsecond=0)
    rows = []
    for ago in range(1, 60):
        at = minute - timedelta(minutes=ago)
        for task, queue in TASKS.items():
            is_bad = task.endswith("send_receipt") and ago < 40
            rows.append(
                Rollup(
                    seconds=60,
                    kind="task",
                    at=at,
                    queue=queue,
                    name=task,
                    succeeded=0 if is_bad else chance.randrange(20, 60),
                    failed=chance.randrange(30, 70) if is_bad else 0,
                    wait_seconds=4.0,
                    run_seconds=30.0,
                    waits={"10": 40},
                    runs={"12": 40},
                )
            )
        rows.append(Rollup(seconds=60, kind="worker", at=at, name=workers[0].pk.hex, succeeded=120))
        if ago < 40:
            failed = chance.randrange(30, 70)
            rows.append(Rollup(seconds=60, kind="error", at=at, name=TIMED_OUT, failed=failed))
    hours = [
        Rollup(
            seconds=3_600,
            kind="error",
            at=minute.replace(minute=0) - timedelta(hours=ago),
            name=fingerprint,
            failed=failed,
        )
        for fingerprint, jobs in letters.items()
        for ago, failed in enumerate(_hourly(len(jobs)))
    ]
    Rollup.objects.bulk_create([*rows, *hours])
    Rolling.objects.update_or_create(
        id=1, defaults={"rolled_at": now, "attempt_id": Attempt.objects.latest("id").pk}
    )


def _schedule(now: datetime, job: Job) -> Schedule:
    schedule = Schedule.objects.create(
        name="nightly report",
        task=REPORT,
        cron="30 2 * * *",
        time_zone="Europe/Paris",
        overlap="skip",
    )
    zone = ZoneInfo(schedule.time_zone)
    night = now.astimezone(zone).replace(hour=2, minute=30, second=0, microsecond=0)
    nights = [night + timedelta(days=days) for days in range(1, -6, -1)]
    coming, *past = [tick for tick in nights if tick - timedelta(days=1) <= now]
    for tick in past:
        Tick.objects.create(
            schedule=schedule,
            tick=tick,
            at=tick + timedelta(seconds=0.3),
            outcome="enqueued",
            job_id=job.pk,
        )
    rows = Schedule.objects.filter(pk=schedule.pk)
    rows.update(last_tick=past[0], look_at=coming)  # what schedulers alone write
    return schedule


def _operation(now: datetime) -> BulkOperation:
    action = Action.objects.create(
        at=now - timedelta(minutes=3),
        actor="kim",
        surface="admin",
        verb="bulk requeue",
        target="bulk operation 1",
    )
    Action.objects.create(
        at=now - timedelta(minutes=1),
        actor="lee",
        surface="page",
        verb="stop bulk",
        target="bulk operation 1",
    )
    return BulkOperation.objects.create(
        backend="default",
        verb="requeue",
        filter=f"state:dead fingerprint:{DECLINED}",
        parameters={"spread": 600.0},
        actor="kim",
        surface="admin",
        action=action.pk,
        state="stopped",
        began_at=now - timedelta(minutes=3),
        stepped_at=now - timedelta(minutes=1),
        total=1_240,
        seen=600,
        counts={"requeued": 588, "skipped: succeeded": 12},
    )
