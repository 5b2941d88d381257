"""Who lives and since when: every page says the same of the same worker, queue and operation."""

import os
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from jobqueue import control
from jobqueue.admin import words
from jobqueue.control import Actor
from jobqueue.models import BulkOperation, Job, Queue
from jobqueue.storage import life_file, storage_for
from tests.admin.making import everything, job, page, worker
from tests.storage.making import register

pytestmark = pytest.mark.django_db

KIM = Actor("kim", "shell")
NOBODY = "No worker that lives takes jobs from this queue."


def test_a_worker_is_alive_on_every_page_or_on_none(admin):
    """On SQLite its process says whether it lives, whatever the lease of its row says."""
    one = worker()
    (known,) = control.status().workers
    shown = words.state("expired" if known.is_expired else "alive")
    assert f"</span> {shown}</span>" in admin.get(page("worker")).text
    assert f"</span> {shown}</span>" in admin.get(page("worker", one.pk)).text
    assert (NOBODY in admin.get(page("queue", "default")).text) is known.is_expired
    assert ("No worker is alive" in admin.get("/admin/jobqueue/").text) is known.is_expired


def test_a_worker_that_drains_serves_no_queue(admin):
    one = register(storage_for(connection))
    try:
        assert NOBODY not in admin.get(page("queue", "default")).text
        control.drain_worker(one, KIM)
        assert NOBODY in admin.get(page("queue", "default")).text
        assert "0, and 1 draining" in admin.get("/admin/jobqueue/").text
    finally:
        for path, (_pid, descriptor) in list(life_file._held.items()):
            os.close(descriptor), path.unlink(), life_file._held.pop(path)


def test_a_paused_queue_says_since_when(admin):
    eight = datetime.now(UTC) - timedelta(minutes=8)
    Queue.objects.create(name="mail", paused=True, paused_at=eight, paused_by="kim")
    assert ">8 min ago</time> by <bdi>kim</bdi>" in admin.get(page("queue")).text
    text = admin.get("/admin/jobqueue/").text
    assert "Queue mail is paused by kim (8 min ago)" in text
    assert f'href="{page("queue", "mail")}"' in text
    assert '<code class="jq-code">manage.py jobs resume mail</code>' in text


def test_the_overview_says_in_which_queue_the_oldest_job_waits(admin):
    hour = datetime.now(UTC) - timedelta(hours=1)
    job("ready", queue="mail", run_at=hour - timedelta(minutes=2))
    job("ready", queue="default", run_at=hour)
    (told,) = re.findall(r"<dt>Oldest ready job</dt><dd>(.*?)</dd>", overview(admin))
    assert re.match(
        r'1 h 2 min <a href="[^"]*state%3Aready\+queue%3Amail">in queue mail</a>$', told
    )
    Queue.objects.create(name="mail", paused=True, paused_at=hour, paused_by="kim")
    assert 'in queue mail</a> <span class="jq-note">(paused)' in overview(admin)
    Job.objects.all().delete()
    assert "<dt>Oldest ready job</dt><dd>–</dd>" in overview(admin)


def overview(admin) -> str:
    return admin.get("/admin/jobqueue/").text


def test_a_stopped_operation_says_by_whom(admin):
    operation = everything()["bulkoperation"]
    BulkOperation.objects.filter(pk=operation).update(state="running")
    address = page("bulkoperation", operation)
    assert "Stopped by" not in admin.get(address).text
    control.bulk_stop(operation, KIM)
    assert "<dt>Stopped by</dt><dd><bdi>kim</bdi></dd>" in admin.get(address).text
