"""Many requests with one key at the same moment, against a real server: one job, equal answers."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from jobqueue.models import IdempotencyKey, Job
from tests.api.conftest import PREFIX
from tests.api.serving import post, server
from tests.api.tasks import CHARGE

REQUESTS = 100
BODY = json.dumps({"task": CHARGE, "args": [7]}).encode()

pytestmark = pytest.mark.django_db(transaction=True)


def database(isolation: str, atomic_requests: bool) -> dict[str, Any]:
    """Return settings of a database; each thread of the server connects anew by them."""
    settings: dict[str, Any] = {"ATOMIC_REQUESTS": atomic_requests}
    if connection.vendor == "postgresql":
        from django.db.backends.postgresql.psycopg_any import IsolationLevel

        settings["OPTIONS"] = {"isolation_level": IsolationLevel[isolation]}
    return settings


def until_answered(port: int, headers: dict[str, str], together: threading.Barrier) -> Any:
    """Send the request; while an earlier one is in progress, again."""
    together.wait()
    while True:
        status, got, body = post(port, f"{PREFIX}/jobs/", BODY, headers)
        if status != 409:
            return status, got.get("Location"), body
        assert json.loads(body)["code"] == "idempotency-key-in-progress"
        assert int(got["Retry-After"]) > 0


@pytest.mark.parametrize("atomic_requests", [False, True])
@pytest.mark.parametrize("isolation", ["READ_COMMITTED", "REPEATABLE_READ"])
def test_a_hundred_requests_at_once_make_one_job(make_caller, settings, isolation, atomic_requests):
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    if isolation != "READ_COMMITTED" and connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer, and no levels to choose")
    kim = make_caller("kim", "enqueue_job")
    headers = kim.headers | {"Idempotency-Key": "k"}
    together = threading.Barrier(REQUESTS)
    with server(**database(isolation, atomic_requests)) as port, ThreadPoolExecutor(REQUESTS) as e:
        calls = [e.submit(until_answered, port, headers, together) for _ in range(REQUESTS)]
        answers = {call.result() for call in calls}
    ((status, location, body),) = answers
    job = Job.objects.get()
    assert (status, location) == (201, f"{PREFIX}/jobs/{job.pk}/")
    assert json.loads(body)["id"] == str(job.pk)
    assert IdempotencyKey.objects.count() == 1
