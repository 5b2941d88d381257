"""Checks that one function holds refuse, and name, what constraints of their own would.

What each of them refuses: test_constraints.py.
"""

import subprocess
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.db.models import Q

from jobqueue.models import Job
from jobqueue.models.row_checks import RowChecks
from project.servers import PostgresServer
from project.servers.postgres import find_postgres
from tests.storage.test_constraints import create

ON_POSTGRES = pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="ordinary constraints elsewhere"
)
(CHECKS,) = (c for c in Job._meta.constraints if isinstance(c, RowChecks))


def refused(**changes: Any) -> Any:
    """Return what the driver says of a job that may not be stored."""
    with pytest.raises(IntegrityError) as error, transaction.atomic():
        create(**changes)
    return error.value.__cause__


@ON_POSTGRES
def test_the_error_is_that_of_a_constraint() -> None:
    error = refused(priority=101)
    assert isinstance(error, psycopg.errors.CheckViolation)
    assert (error.diag.table_name, error.diag.constraint_name) == (
        "jobqueue_job",
        "jobqueue_job_priority",
    )
    assert error.diag.message_primary == (
        'new row for relation "jobqueue_job" violates check constraint "jobqueue_job_priority"'
    )


def test_an_update_is_refused_like_an_insert() -> None:
    job = create()
    with pytest.raises(IntegrityError, match="jobqueue_job_counts"), transaction.atomic():
        Job.objects.filter(pk=job.pk).update(attempts=job.fence + 1)
    job.refresh_from_db()
    assert job.attempts == 2


def test_a_form_is_told_which_condition_is_not_met() -> None:
    with pytest.raises(ValidationError, match="jobqueue_job_priority"):
        CHECKS.validate(Job, with_unsaved(priority=101))
    CHECKS.validate(Job, with_unsaved(priority=100))


def with_unsaved(**changes: Any) -> Job:
    job = create()
    for name, value in changes.items():
        setattr(job, name, value)
    return job


@ON_POSTGRES
def test_it_can_be_taken_away_and_put_back() -> None:
    with connection.schema_editor() as editor:
        editor.remove_constraint(Job, CHECKS)
    wrong = create(priority=101)
    with (
        pytest.raises(IntegrityError, match="jobqueue_job_priority"),
        transaction.atomic(),
        connection.schema_editor() as editor,
    ):
        editor.add_constraint(Job, CHECKS)
    wrong.delete()
    with connection.schema_editor() as editor:
        editor.add_constraint(Job, CHECKS)
    refused(priority=101)


def test_a_migration_sees_each_change() -> None:
    path, args, kwargs = CHECKS.deconstruct()
    assert path == "jobqueue.models.row_checks.RowChecks"
    assert RowChecks(*args, **kwargs) == CHECKS
    other = {**CHECKS.checks, "jobqueue_job_priority": Q(priority__gte=0)}
    assert RowChecks(name=CHECKS.name, checks=other) != CHECKS


@ON_POSTGRES
def test_a_restored_dump_refuses_the_same(postgres_server: PostgresServer) -> None:
    source = postgres_server.url_of(str(connection.settings_dict["NAME"]))
    target = postgres_server.url_of("restored")
    binaries = find_postgres()
    dump = subprocess.run(
        [binaries / "pg_dump", "--schema-only", source], capture_output=True, check=True
    )
    with psycopg.connect(source, autocommit=True) as session:
        session.execute("CREATE DATABASE restored")
        try:
            subprocess.run(
                [binaries / "psql", "--quiet", "--set", "ON_ERROR_STOP=1", target],
                input=dump.stdout,
                capture_output=True,
                check=True,
            )
            found = constraints(source)
            assert found == constraints(target)
            assert CHECKS.name in found
        finally:
            session.execute("DROP DATABASE restored")


def constraints(url: str) -> dict[str, str]:
    """Return the constraints of the job table, and what they call, by name."""
    with psycopg.connect(url) as session:
        rows = session.execute(
            "SELECT conname, pg_get_constraintdef(c.oid) || coalesce(p.prosrc, '')"
            " FROM pg_constraint c LEFT JOIN pg_proc p ON p.proname = c.conname"
            " WHERE conrelid = 'jobqueue_job'::regclass"
        )
        return dict(rows.fetchall())
