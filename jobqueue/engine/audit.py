"""The audit: read-only questions whose every answer is a broken promise.

Each check is one query of the storage (``audit_<check>.sql``) over the tables as they are, so it
also finds what constraints should have made impossible, on a database that has lost them. A job
that ran is allowed to be slow; `stuck` and `held_by_nobody` report only what no sweep has touched
for `AUDIT_PATIENCE_SECONDS`, which includes that no worker runs at all.

The audit knows what the jobs' own rows say. Whether an effect happened twice stands in the tables
of the project: `duplicate_effects` asks those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Model

from jobqueue.storage import Storage

CHECKS: dict[str, str] = {
    "double_success": "A job succeeded without exactly one succeeded attempt, or has one "
    "without having succeeded.",
    "stale_fence": "A success was written by another claim than the job's last.",
    "gap": "The attempts are not numbered from 1 to the job's count.",
    "fence_order": "A later attempt carries no greater fence.",
    "lost": "There are attempts of a job that has no row.",
    "stuck": "Nobody moves a job on: it is past its deadline, or due and not promoted. Where no "
    "worker or scheduler runs, that is all it means: start one.",
    "held_by_nobody": "A job runs under a worker that is dead or unknown.",
}
"""The checks by name, and what a violation of each means."""

DUPLICATE_EFFECT = "duplicate_effect"
DEFAULT_LIMIT = 20
"""Violations listed a check: enough to see a pattern, few enough to read."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: which check found it, the job (if it is about one), and the facts."""

    check: str
    job_id: UUID | None
    detail: str


def audit(storage: Storage, *, limit: int = DEFAULT_LIMIT) -> list[Violation]:
    """Return the violations found, at most `limit` of each check, in the order of `CHECKS`."""
    return [
        Violation(check, _job_id(row.pop("job_id")), _sentence(row))
        for check in CHECKS
        for row in storage.audit_rows(check, limit)
    ]


def duplicate_effects(
    model: type[Model], field: str, *, using: str | None = None, limit: int = DEFAULT_LIMIT
) -> list[Violation]:
    """Return up to `limit` values of `field` that more than one row of `model` has.

    For a field that names the job that wrote the row, each is an effect that happened twice.
    NULL is not a value.
    """
    doubled = (
        model._base_manager.using(using)  # the default manager may hide rows
        .filter(**{f"{field}__isnull": False})
        .values_list(field)
        .order_by(field)
        .annotate(rows=Count("pk"))
        .filter(rows__gt=1)[:limit]
    )
    name = f"{model._meta.label}.{field}"
    return [
        Violation(DUPLICATE_EFFECT, _job_id(value), f"{name} {value}, rows {rows}")
        for value, rows in doubled
    ]


def _job_id(value: Any) -> UUID | None:
    try:
        return UUID(str(value))
    except ValueError:
        return None


def _sentence(facts: dict[str, Any]) -> str:
    named = {name.replace("_", " "): value for name, value in facts.items()}
    return ", ".join(f"{name} {value}" for name, value in named.items())
