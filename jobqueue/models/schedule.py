"""A schedule: a recurring plan that makes a job at each of its ticks.

The columns under "engine" are written by schedulers alone, by compare-and-set; `save()` leaves
them as they are, so that a form that was open while a tick happened cannot set it back. What
`save()` changes about the plan counts from now: the ticks that a changed, new or enabled plan
would have had until then never happen. Schedulers do the same for rows that were changed in
another way (`update()`, SQL), when they next look.

Plan and policy are checked by `clean()`, the task and its arguments by `jobqueue.control`, and
what can be by constraints. A row that is wrong all the same holds up no other: its error is kept
in it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Greatest, Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from jobqueue.conf import MAX_QUEUE_NAME_LENGTH, MAX_TASK_NAME_LENGTH
from jobqueue.cron import MAX_EXPRESSION_LENGTH, MAX_ZONE_LENGTH
from jobqueue.declarations import MAX_SCHEDULE_NAME_LENGTH, default_zone, name_problem
from jobqueue.exceptions import InvalidSchedule
from jobqueue.models.fields import JSONDocument
from jobqueue.plan import (
    EARLIEST,
    LATEST,
    MAX_EVERY_SECONDS,
    MAX_JITTER_SECONDS,
    MAX_MISSED_LIMIT,
    MISSED,
    MISSED_LIMIT,
    OVERLAP,
    Plan,
    Policy,
)

CODE, DATABASE = "code", "database"
ENGINE_COLUMNS = frozenset({"plan", "last_tick", "look_at", "error", "error_at", "undeclared_at"})


def no_arguments() -> dict[str, Any]:
    """Return the arguments of a job that takes none."""
    return {"args": [], "kwargs": {}}


def _choices(values: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


def _within(field: str) -> Q:
    bounds = {f"{field}__gte": EARLIEST, f"{field}__lte": LATEST}
    return Q(**{f"{field}__isnull": True}) | Q(**bounds)


class Schedule(models.Model):
    """A recurring plan."""

    objects: ClassVar[models.Manager[Schedule]] = models.Manager()

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=MAX_SCHEDULE_NAME_LENGTH, unique=True)
    backend = models.CharField(max_length=64, default="default", help_text="TASKS alias.")
    source = models.CharField(
        max_length=8, choices=_choices((CODE, DATABASE)), default=DATABASE, editable=False
    )
    task = models.CharField(max_length=MAX_TASK_NAME_LENGTH, help_text="Dotted path.")
    arguments = JSONDocument(default=no_arguments, help_text='{"args": [...], "kwargs": {...}}')
    queue_name = models.CharField(
        max_length=MAX_QUEUE_NAME_LENGTH, default="", blank=True, help_text="Empty: the task's own."
    )
    priority = models.SmallIntegerField(
        null=True, blank=True, help_text="-100 … 100; empty: the task's own."
    )
    enabled = models.BooleanField(default=True)

    cron = models.CharField(
        max_length=MAX_EXPRESSION_LENGTH,
        default="",
        blank=True,
        help_text="Minute, hour, day of month, month, day of week; or an @name.",
    )
    every_seconds = models.IntegerField(null=True, blank=True)
    at = models.DateTimeField(null=True, blank=True)
    time_zone = models.CharField(max_length=MAX_ZONE_LENGTH, default=default_zone)
    start_at = models.DateTimeField(null=True, blank=True, help_text="No tick before.")
    end_at = models.DateTimeField(null=True, blank=True, help_text="No tick after.")

    missed = models.CharField(max_length=8, choices=_choices(MISSED), default="once")
    missed_limit = models.IntegerField(
        default=MISSED_LIMIT, help_text='Most jobs for ticks that were missed, with "all".'
    )
    overlap = models.CharField(max_length=8, choices=_choices(OVERLAP), default="allow")
    jitter_seconds = models.IntegerField(
        default=0, help_text="A job is due up to so long after its tick."
    )

    # Engine.
    plan = models.CharField(
        max_length=32,
        default="",
        editable=False,
        help_text="Fingerprint of what last_tick was meant for.",
    )
    last_tick = models.DateTimeField(
        null=True, editable=False, help_text="Ticks up to here are settled; never moves back."
    )
    look_at = models.DateTimeField(
        null=True, editable=False, help_text="When a scheduler looks next; NULL: at once."
    )
    error = models.TextField(default="", editable=False, help_text="Why it cannot tick.")
    error_at = models.DateTimeField(null=True, editable=False)
    undeclared_at = models.DateTimeField(
        null=True, editable=False, help_text="Since when code does not declare it any more."
    )

    created_at = models.DateTimeField(default=timezone.now, editable=False)
    version = models.BigIntegerField(
        default=1, editable=False, help_text="Grows with every change; not with ticks."
    )

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        permissions = (("run_schedule", "Can run schedules now"),)
        constraints = (
            models.CheckConstraint(name="jobqueue_schedule_name", condition=~Q(name="")),
            models.CheckConstraint(
                name="jobqueue_schedule_source", condition=Q(source__in=[CODE, DATABASE])
            ),
            models.CheckConstraint(
                name="jobqueue_schedule_one_plan",
                condition=(~Q(cron="") & Q(every_seconds__isnull=True, at__isnull=True))
                | Q(cron="", every_seconds__isnull=False, at__isnull=True)
                | Q(cron="", every_seconds__isnull=True, at__isnull=False),
            ),
            models.CheckConstraint(
                name="jobqueue_schedule_numbers",
                condition=(
                    Q(every_seconds__isnull=True)
                    | Q(every_seconds__gte=1, every_seconds__lte=MAX_EVERY_SECONDS)
                )
                & Q(jitter_seconds__gte=0, jitter_seconds__lte=MAX_JITTER_SECONDS)
                & Q(missed_limit__gte=1, missed_limit__lte=MAX_MISSED_LIMIT)
                & (Q(priority__isnull=True) | Q(priority__gte=-100, priority__lte=100)),
            ),
            models.CheckConstraint(
                name="jobqueue_schedule_times",
                condition=_within("at") & _within("start_at") & _within("end_at"),
            ),
            models.CheckConstraint(
                name="jobqueue_schedule_end",
                condition=Q(start_at__isnull=True)
                | Q(end_at__isnull=True)
                | Q(end_at__gte=F("start_at")),
            ),
            models.CheckConstraint(
                name="jobqueue_schedule_policy",
                condition=Q(missed__in=MISSED, overlap__in=OVERLAP) & ~Q(time_zone=""),
            ),
        )

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write what people decide; a new or changed plan counts from now.

        Raise InvalidSchedule for a plan or policy that cannot be, whether clean() was called or
        not.
        """
        self.as_policy()
        fingerprint = self.as_plan().fingerprint(self.enabled)
        written = {f.name for f in self._meta.concrete_fields if not f.primary_key}
        written &= set(kwargs.get("update_fields") or written) | {"version"}
        is_new = self._state.adding
        if not is_new:
            self.version += 1
            written -= ENGINE_COLUMNS
            kwargs["update_fields"] = written
        if is_new or fingerprint != self.plan:
            self._count_from_now(fingerprint, is_new)
            written |= {"plan", "last_tick", "look_at", "error", "error_at"}
        super().save(*args, **kwargs)
        self.refresh_from_db(using=self._state.db, fields=sorted(ENGINE_COLUMNS))

    # --- what it means ----------------------------------------

    def as_plan(self) -> Plan:
        """Return when it ticks. Raise InvalidSchedule."""
        return Plan(
            cron=self.cron,
            every_seconds=self.every_seconds,
            at=aware(self.at),
            time_zone=self.time_zone,
            start_at=aware(self.start_at),
            end_at=aware(self.end_at),
        )

    def as_policy(self) -> Policy:
        """Return what becomes of late and overlapping ticks. Raise InvalidSchedule."""
        return Policy(
            missed=self.missed,
            missed_limit=self.missed_limit,
            overlap=self.overlap,
            jitter_seconds=self.jitter_seconds,
        )

    def clean(self) -> None:
        """Raise ValidationError, by field, for a plan or policy that cannot be."""
        errors: dict[str, str] = {}
        if (problem := name_problem(self.name)) is not None:
            errors["name"] = problem
        for make in (self.as_plan, self.as_policy):
            try:
                make()
            except InvalidSchedule as error:
                errors |= error.errors
        if errors:
            raise ValidationError(
                {field if hasattr(self, field) else NON_FIELD_ERRORS: text
                 for field, text in errors.items()}
            )  # fmt: skip

    def _count_from_now(self, fingerprint: str, is_new: bool) -> None:
        self.plan = fingerprint
        # A clock that was set back does not move it back, either.
        self.last_tick = Now() if is_new else Greatest(Coalesce(F("last_tick"), Now()), Now())
        self.look_at = None
        self.error, self.error_at = "", None


def aware(value: Any) -> Any:
    """Return a time of a row as an aware one: without USE_TZ it is in the project's zone.

    Other values are returned as they are.
    """
    if isinstance(value, datetime) and timezone.is_naive(value):
        return timezone.make_aware(value, timezone.get_default_timezone())
    return value
