"""A job: one request to run a task. The hot table.

Rows are written by SQL of `jobqueue.storage`, never by ``save()``: a write about a running job
carries the whole guard (id, state, fence, worker). Indexes are few, partial, and on live states.
"""

from typing import Self

from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.utils.translation import gettext_lazy as _

from jobqueue.conf import MAX_JOB_REASON_LENGTH, MAX_QUEUE_NAME_LENGTH, MAX_TASK_NAME_LENGTH
from jobqueue.ids import new_job_id
from jobqueue.models.attempt import Attempt
from jobqueue.models.fields import JSONDocument
from jobqueue.models.row_checks import RowChecks
from jobqueue.models.tag import JobTag
from jobqueue.states import FINISHED, LIVE, WAITING, State

_FINISHED = sorted(FINISHED)
_LIVE = sorted(LIVE)
_WAITING = sorted(WAITING)

LISTED_STATES = (WAITING | FINISHED) - {State.READY, State.SUCCEEDED}
"""States in which jobs are found in the order of their ids."""


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs, by what their rows do not say themselves."""

    def tagged(self, tag: str) -> Self:
        """Return those that bear `tag`, found through its index."""
        return self.filter(id__in=JobTag.objects.filter(tag=tag).values("job_id"))

    def with_last_start(self) -> Self:
        """Add `last_started_at`: when the newest attempt that has ended began, None without one.

        For pages of jobs: one look into the index of (job_id, number) for each row.
        """
        newest = Attempt.objects.filter(job_id=OuterRef("id"), number=OuterRef("attempts"))
        return self.annotate(last_started_at=Subquery(newest.values("started_at")[:1]))


class Job(models.Model):
    """One request to run a task."""

    # The order is PostgreSQL's. Each change compares all columns that an index names, old and new,
    # and reaches a column by walking over those before it: so they come first, and of them those of
    # a fixed width that are always there. It saves a twentieth of a claim or of a batched finish.
    id = models.UUIDField(primary_key=True, default=new_job_id, editable=False)
    run_at = models.DateTimeField(help_text="Not before; database clock.")
    rank = models.BigIntegerField(
        help_text="Claim order, smaller first: due time minus what the priority is worth, µs."
    )
    enqueued_at = models.DateTimeField()
    alone = models.BooleanField(default=False, help_text="Runs in a process of its own.")
    state = models.CharField(max_length=16, choices=[(s.value, s.value) for s in State])
    queue = models.CharField(max_length=MAX_QUEUE_NAME_LENGTH)
    task = models.CharField(max_length=MAX_TASK_NAME_LENGTH, help_text="Dotted path.")
    unique_until = models.CharField(
        max_length=8, default="", blank=True, help_text="It holds its key until: start or done."
    )
    schedule = models.CharField(max_length=255, default="", blank=True)
    reason = models.CharField(
        max_length=MAX_JOB_REASON_LENGTH,
        default="",
        blank=True,
        help_text="Why it is blocked, dead or cancelled.",
    )
    created_by = models.CharField(max_length=255, default="", blank=True)
    error_fingerprint = models.CharField(max_length=32, default="", blank=True)

    worker = models.UUIDField(null=True, help_text="Identity of the process that runs it.")
    finished_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True, help_text="Not started by then: cancelled.")
    limit_key = models.CharField(max_length=255, null=True)  # noqa: DJ001 - NULL is "no limit"
    unique_key = models.CharField(max_length=255, null=True)  # noqa: DJ001 - NULL is "not unique"
    unique_window_end = models.DateTimeField(
        null=True, help_text="It holds its key also when it has ended, until somebody sees this."
    )

    fence = models.BigIntegerField(default=0, help_text="Grows at every claim.")
    version = models.BigIntegerField(default=1, help_text="Grows with every write; for ETag.")
    timeout = models.FloatField(help_text="Seconds an attempt may run.")
    attempts = models.IntegerField(default=0, help_text="Executions that have ended.")
    failures = models.IntegerField(default=0, help_text="Charged ones since the last requeue.")
    pending = models.IntegerField(default=0, help_text="Parents that have not ended.")
    priority = models.SmallIntegerField(default=0, help_text="-100 … 100, higher is sooner.")
    suspicions = models.SmallIntegerField(default=0, help_text="Workers lost while it ran.")
    has_children = models.BooleanField(default=False)
    backend = models.CharField(max_length=64, help_text="TASKS alias it was enqueued through.")
    on_crash = models.CharField(max_length=8, default="retry", help_text="retry or bury.")
    max_attempts = models.IntegerField(null=True, help_text="NULL: unlimited.")
    claimed_at = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True, help_text="Of the running attempt.")
    arguments = JSONDocument(help_text='{"args": [...], "kwargs": {...}}')
    result = JSONDocument(null=True)
    error_class = models.CharField(max_length=255, default="", blank=True)
    error_message = models.TextField(default="", blank=True)
    tick = models.DateTimeField(null=True, help_text="The instant of the schedule it stands for.")
    copied_from = models.UUIDField(null=True)
    trace_context = JSONDocument(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        permissions = (
            ("requeue_job", "Can requeue jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("discard_job", "Can discard dead jobs"),
            ("reprioritize_job", "Can change when and where jobs that wait run"),
            ("enqueue_job", "Can enqueue exposed tasks"),
            ("view_job_payload", "Can see arguments, results and tracebacks"),
        )
        constraints = (
            RowChecks(
                name="jobqueue_job_row",
                checks={
                    "jobqueue_job_state": Q(state__in=[s.value for s in State]),
                    "jobqueue_job_running_has_owner": Q(
                        state=State.RUNNING,
                        worker__isnull=False,
                        claimed_at__isnull=False,
                        deadline__isnull=False,
                    )
                    | (
                        ~Q(state=State.RUNNING)
                        & Q(worker__isnull=True, claimed_at__isnull=True, deadline__isnull=True)
                    ),
                    "jobqueue_job_finished_has_time": Q(
                        state__in=_FINISHED, finished_at__isnull=False
                    )
                    | (~Q(state__in=_FINISHED) & Q(finished_at__isnull=True)),
                    "jobqueue_job_result_means_success": Q(result__isnull=True)
                    | Q(state=State.SUCCEEDED),
                    "jobqueue_job_blocked_has_reason": ~Q(state=State.BLOCKED) | ~Q(reason=""),
                    "jobqueue_job_counts": Q(failures__gte=0, failures__lte=F("attempts"))
                    & Q(attempts__lte=F("fence"), suspicions__gte=0, pending__gte=0),
                    "jobqueue_job_max_attempts": Q(max_attempts__isnull=True)
                    | Q(max_attempts__gte=1),
                    "jobqueue_job_priority": Q(priority__gte=-100, priority__lte=100),
                    "jobqueue_job_unique_until": Q(
                        unique_key__isnull=False, unique_until__in=["start", "done"]
                    )
                    | Q(unique_key=None, unique_until="", unique_window_end=None),
                    "jobqueue_job_on_crash": Q(on_crash__in=["retry", "bury"]),
                },
            ),
            # The rows that hold their key; `jobqueue.unique` says what that means. The statements
            # of storage that ask for them repeat the condition, so that this index serves.
            models.UniqueConstraint(
                name="jobqueue_job_unique",
                fields=["task", "unique_key"],
                condition=Q(unique_key__isnull=False)
                & (
                    Q(state__in=_WAITING)
                    | Q(state=State.RUNNING, unique_until="done")
                    | Q(unique_window_end__isnull=False)
                ),
            ),
        )
        indexes = (
            models.Index(
                name="jobqueue_job_ready",
                fields=["queue", "rank", "id"],
                condition=Q(state=State.READY),
            ),
            models.Index(
                name="jobqueue_job_running", fields=["worker"], condition=Q(state=State.RUNNING)
            ),
            models.Index(
                name="jobqueue_job_due",
                fields=["run_at", "id"],
                condition=Q(state__in=[State.RETRYING, State.SCHEDULED]),
            ),
            models.Index(
                name="jobqueue_job_alone",
                fields=["queue", "rank"],
                condition=Q(state=State.READY, alone=True),
            ),
            models.Index(
                name="jobqueue_job_blocked",
                fields=["reason", "task"],
                condition=Q(state=State.BLOCKED),
            ),
            models.Index(
                name="jobqueue_job_expires",
                fields=["expires_at", "id"],
                condition=Q(expires_at__isnull=False, state__in=_WAITING),
            ),
            models.Index(
                name="jobqueue_job_schedule",
                fields=["schedule", "enqueued_at"],
                condition=Q(schedule__gt="", state__in=_LIVE),
            ),
            models.Index(
                name="jobqueue_job_limit",
                fields=["limit_key", "state", "queue", "rank", "id"],
                condition=Q(limit_key__isnull=False)
                & Q(state__in=[State.BLOCKED, State.READY, State.RUNNING]),
            ),
            models.Index(
                name="jobqueue_job_error",
                fields=["error_fingerprint", "id"],
                condition=Q(state=State.DEAD),
            ),
            models.Index(
                name="jobqueue_job_dead", fields=["finished_at"], condition=Q(state=State.DEAD)
            ),
            # For lists, in the order of ids. Jobs that are enqueued, run and succeed enter neither.
            models.Index(
                name="jobqueue_job_by_state",
                fields=["state", "id"],
                condition=Q(state__in=sorted(LISTED_STATES)),
            ),
            models.Index(
                name="jobqueue_job_creator",
                fields=["created_by", "id"],
                condition=Q(created_by__gt=""),
            ),
        )

    def __str__(self) -> str:
        return f"{self.task} {self.id}"
