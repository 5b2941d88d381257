"""The audit finds each planted violation, names it, and is silent about a healthy database.

What a constraint makes impossible is planted with the constraint gone: the audit must not rely
on it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from jobqueue.engine.audit import CHECKS, Violation, audit, duplicate_effects
from jobqueue.models import Attempt, Job, Worker
from jobqueue.storage import Storage
from tests.app.models import Effect
from tests.storage.making import claim, claimed, ending, insert, prune, register
from tests.storage.test_finish import success
from tests.storage.test_operators import in_every_state

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@contextmanager
def constraints_gone(model: type, *names: str) -> Iterator[None]:
    """Take constraints away, and give them back once the planted rows are deleted."""
    everything = model._meta.constraints
    removed = [c for c in everything if c.name in names]
    assert len(removed) == len(names)
    # SQLite makes the table anew from what the model says now.
    model._meta.constraints = [c for c in everything if c not in removed]
    with connection.schema_editor() as editor:
        for constraint in removed:
            editor.remove_constraint(model, constraint)
    try:
        yield
    finally:
        model.objects.all().delete()
        model._meta.constraints = everything
        with connection.schema_editor() as editor:
            for constraint in removed:
                editor.add_constraint(model, constraint)


def found(storage: Storage) -> list[tuple[str, UUID | None]]:
    return [(violation.check, violation.job_id) for violation in audit(storage)]


def succeeded(storage: Storage) -> UUID:
    """Make a job that failed once and then succeeded."""
    worker = register(storage)
    first = claimed(storage, worker)
    storage.end_many([ending(first, "ready", outcome="failed", charged=True)])
    (second,) = claim(storage, worker)
    assert storage.finish_many(worker, [success(second)]) == []
    return first.id


def change(job_id: UUID, **changes: Any) -> None:
    Job.objects.filter(pk=job_id).update(**changes)


def change_attempt(job_id: UUID, number: int, /, **changes: Any) -> None:
    assert Attempt.objects.filter(job_id=job_id, number=number).update(**changes) == 1


def test_a_healthy_database_has_no_violation(storage: Storage) -> None:
    succeeded(storage)
    held = claimed(storage)
    storage.force_cancel(held.id, held.fence, held.worker, "operator")
    in_every_state(storage)
    assert audit(storage) == []


def test_two_successes_of_one_job_are_found(storage: Storage) -> None:
    job_id = succeeded(storage)
    with constraints_gone(Attempt, "jobqueue_attempt_one_success"):
        change_attempt(job_id, 1, outcome="succeeded")
        assert ("double_success", job_id) in found(storage)
        (violation,) = [v for v in audit(storage) if v.check == "double_success"]
        assert violation.detail == "state succeeded, successes 2"


def test_a_success_of_a_job_that_has_not_succeeded_is_found(storage: Storage) -> None:
    job_id = succeeded(storage)
    change(job_id, state="cancelled", result=None)
    assert found(storage) == [("double_success", job_id)]


def test_a_success_that_no_attempt_tells_of_is_found(storage: Storage) -> None:
    job_id = succeeded(storage)
    change_attempt(job_id, 2, outcome="lost")
    assert found(storage) == [("double_success", job_id)]


def test_a_success_of_a_stale_claim_is_found(storage: Storage) -> None:
    job_id = succeeded(storage)
    change(job_id, fence=7)
    (violation,) = audit(storage)
    assert (violation.check, violation.job_id) == ("stale_fence", job_id)
    assert violation.detail == "fence 7, attempt fence 2, outcome succeeded"


def test_a_fence_that_was_never_given_out_is_found(storage: Storage) -> None:
    held = claimed(storage)
    storage.end_many([ending(held, "ready", outcome="lost")])
    change_attempt(held.id, 1, fence=9)
    assert found(storage) == [("stale_fence", held.id)]


def test_a_missing_attempt_is_found(storage: Storage) -> None:
    job_id = succeeded(storage)
    Attempt.objects.filter(job_id=job_id, number=1).delete()
    (violation,) = audit(storage)
    assert (violation.check, violation.job_id) == ("gap", job_id)
    assert violation.detail == "attempts 2, found 1, lowest 2, highest 2"


def test_a_job_that_lost_all_its_attempts_is_found(storage: Storage) -> None:
    held = claimed(storage)
    storage.end_many([ending(held, "ready", outcome="lost")])
    Attempt.objects.all().delete()
    assert found(storage) == [("gap", held.id)]


def test_numbers_that_do_not_count_from_one_are_found(storage: Storage) -> None:
    job_id = succeeded(storage)
    change_attempt(job_id, 2, number=3)
    assert found(storage) == [("gap", job_id)]


def test_a_number_given_twice_is_found(storage: Storage) -> None:
    job_id = succeeded(storage)
    with constraints_gone(Attempt, "jobqueue_attempt_job_number"):
        change_attempt(job_id, 1, number=2)
        assert ("gap", job_id) in found(storage)


def test_fences_that_do_not_grow_are_found(storage: Storage) -> None:
    job_id = succeeded(storage)
    change_attempt(job_id, 2, number=3)
    change_attempt(job_id, 1, number=2)
    change_attempt(job_id, 3, number=1)
    assert found(storage) == [("fence_order", job_id)]


def test_a_fence_used_twice_is_found(storage: Storage) -> None:
    job_id = succeeded(storage)
    with constraints_gone(Attempt, "jobqueue_attempt_job_fence"):
        change_attempt(job_id, 1, fence=2)
        (violation,) = audit(storage)
        assert (violation.check, violation.job_id) == ("fence_order", job_id)
        assert violation.detail == "number 2, fence 2, fence before 2"


def test_a_lost_job_is_found_by_what_it_left(storage: Storage) -> None:
    job_id = succeeded(storage)
    Job.objects.filter(pk=job_id).delete()
    (violation,) = audit(storage)
    assert (violation.check, violation.job_id) == ("lost", job_id)
    assert violation.detail == "attempts 2, task app.task"


def test_a_pruned_job_is_not_lost(storage: Storage) -> None:
    succeeded(storage)
    assert prune(storage, "succeeded", -10.0, 10) == 1
    assert audit(storage) == []


def test_a_job_that_runs_far_past_its_deadline_is_stuck(storage: Storage) -> None:
    held = claimed(storage)
    change(held.id, deadline=LONG_AGO)
    (violation,) = audit(storage)
    assert (violation.check, violation.job_id) == ("stuck", held.id)
    assert violation.detail == (
        "state running, what past its deadline, since 2020-01-01 00:00:00 UTC"
    )


def test_a_due_job_that_nobody_promotes_is_stuck(storage: Storage) -> None:
    (job_id,) = insert(storage, delay=3_600.0)
    assert audit(storage) == []
    change(job_id, run_at=LONG_AGO)
    assert found(storage) == [("stuck", job_id)]


def test_a_job_of_a_worker_long_dead_is_held_by_nobody(storage: Storage) -> None:
    held = claimed(storage)
    storage.mark_dead(held.worker, "test")
    assert audit(storage) == []  # a sweep may be about to take it
    Worker.objects.update(dead_at=LONG_AGO)
    (violation,) = audit(storage)
    assert (violation.check, violation.job_id) == ("held_by_nobody", held.id)
    assert "owner dead" in violation.detail


def test_a_job_of_an_unknown_worker_is_held_by_nobody(storage: Storage) -> None:
    held = claimed(storage)
    Worker.objects.all().delete()
    change(held.id, claimed_at=LONG_AGO)
    assert found(storage) == [("held_by_nobody", held.id)]


@pytest.mark.postgres_only("on SQLite a worker that does not beat is alive while its process is")
def test_a_job_of_a_worker_without_a_lease_is_held_by_nobody(storage: Storage) -> None:
    held = claimed(storage)
    Worker.objects.update(lease_until=LONG_AGO)
    assert found(storage) == [("held_by_nobody", held.id)]


def test_every_check_is_bounded(storage: Storage) -> None:
    for job_id in insert(storage, 5, delay=60.0):
        change(job_id, run_at=LONG_AGO)
    assert len(audit(storage, limit=3)) == 3


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_only_reads(open_storage: Callable[[], Storage], check: str) -> None:
    storage = open_storage()
    storage.connection.ensure_connection()
    read_only = {
        "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "sqlite": "PRAGMA query_only = ON",
    }
    with storage.connection.cursor() as cursor:
        cursor.execute(read_only[storage.vendor])
    assert storage.audit_rows(check, 10) == []


def test_duplicate_effects_are_counted_in_any_table(storage: Storage) -> None:
    once, twice = insert(storage, 2)
    for job_id in (once, twice, twice):
        Effect.objects.create(job_id=str(job_id))
    detail = f"app.Effect.job_id {twice}, rows 2"
    assert duplicate_effects(Effect, "job_id") == [Violation("duplicate_effect", twice, detail)]


def test_a_duplicate_that_names_no_job_is_reported_by_its_value() -> None:
    for label in ("a", "b", "b", "c", "c"):
        Effect.objects.create(job_id="", label=label)
    doubled = duplicate_effects(Effect, "label")
    assert [(v.job_id, v.detail) for v in doubled] == [
        (None, "app.Effect.label b, rows 2"),
        (None, "app.Effect.label c, rows 2"),
    ]
    assert len(duplicate_effects(Effect, "label", limit=1)) == 1
