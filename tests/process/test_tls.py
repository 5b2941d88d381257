"""Sessions over TLS: a copy that spoke on an inherited one would break its cipher for both."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from project.servers import PostgresServer
from project.servers.process import give_to_server
from tests.app.models import Effect
from tests.process.databases import django_on, migrate
from tests.process.harness import Site, assert_sound, outcomes
from tests.process.tasks import write
from tests.process.test_fork import TASKS

DEBIAN = Path("/usr/lib/postgresql")
"""The server in our wheel is built without TLS."""

pytestmark = pytest.mark.postgres_only("SQLite has no sessions")


@pytest.fixture(scope="module")
def process_url(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The URL of a database that lets nobody in without TLS."""
    found = sorted(DEBIAN.glob("*/bin/postgres"))
    if not found:
        pytest.skip("no server with TLS is installed (Debian's postgresql has it)")
    with TemporaryDirectory() as folder:  # not pytest's, whose parents are for one user only
        settings = {"ssl": "on", **certificate(Path(folder))}
        with PostgresServer(durable=False, binaries=found[-1].parent, settings=settings) as server:
            url = f"{server.url}?sslmode=require"
            with django_on(url, django_db_blocker):
                migrate()
            yield url


def certificate(folder: Path) -> dict[str, str]:
    """Make a key and a certificate that the server may read; return the settings that name them."""
    key, signed = folder / "server.key", folder / "server.crt"
    subject = ["-subj", "/CN=localhost", "-days", "1"]
    files = ["-keyout", str(key), "-out", str(signed)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
    for path in (folder, key, signed):
        give_to_server(path)
    return {"ssl_key_file": str(key), "ssl_cert_file": str(signed)}


def test_jobs_that_fork_and_jobs_beside_them_share_no_session_over_tls(site: Site):
    with connection.cursor() as cursor:
        cursor.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        assert cursor.fetchone() == (True,)
    program = site.runworker("--processes", "2")
    forking = [task.enqueue().id for task in TASKS]
    writing = [job.id for job in write.enqueue_many([write.bind() for _ in range(300)])]
    site.wait_until_done()
    assert all(outcomes(job_id) == ["succeeded"] for job_id in [*forking, *writing])
    left = Effect.objects.filter(job_id__in=writing).values_list("job_id", flat=True)
    assert sorted(left) == sorted(writing)
    assert_sound()
    assert "bad record mac" not in program.text()
    assert not program.events("database.away")
    assert program.stop() == 0
