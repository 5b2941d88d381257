"""The databases of the run are real, and shared with the processes that tests start."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from tests.app.models import Effect

ROOT = Path(__file__).parent.parent.parent

CHILD = """
import django; django.setup()
from tests.app.models import Effect
for alias in ("default", "other"):
    print(Effect.objects.using(alias).get().label)
    Effect.objects.using(alias).create(job_id="child", label="from the child")
"""


@pytest.mark.process
@pytest.mark.django_db(transaction=True, databases=["default", "other"])
def test_a_child_process_works_on_the_same_databases(child_environment: dict[str, str]) -> None:
    for alias in ("default", "other"):
        Effect.objects.using(alias).create(job_id="parent", label=f"on {alias}")
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        env=child_environment,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert child.stdout.split("\n")[:2] == ["on default", "on other"]
    for alias in ("default", "other"):
        assert Effect.objects.using(alias).filter(job_id="child").count() == 1


@pytest.mark.sqlite_only("PostgreSQL has no journal mode")
@pytest.mark.django_db(transaction=True)
def test_sqlite_is_a_file_with_a_write_ahead_log() -> None:
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert Path(str(connection.settings_dict["NAME"])).exists()


@pytest.mark.postgres_only("SQLite has no server")
@pytest.mark.django_db
def test_postgres_confirms_commits_that_are_written() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)
