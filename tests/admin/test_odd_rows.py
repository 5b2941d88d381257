"""Rows that strangers, older releases and bugs have left: pages show them, nothing of them runs."""

import csv
import re
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import connection

from jobqueue.models import Job, JobTag, LogLine, Queue
from tests.admin.making import around, attempt, everything, job, page, worker
from tests.storage.making import run_sql

pytestmark = pytest.mark.django_db

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'`javascript:alert(3)"
TURNED = "mail\u202egpj.exe\u2066\u200f"
HREF = re.compile(r'(?:href|action|formaction|src)="([^"]*)"')


def assert_harmless(text: str, where: str = "") -> None:
    for piece in ("<img src=x", "<script>alert", "onerror=alert(1)>"):
        assert piece not in text
    assert "\u202e" not in text, (
        f"{where}: what turns the direction of writing is shown as an escape"
    )
    for address in HREF.findall(text):
        assert not address.lower().startswith("javascript:")


def plant(text: str) -> Job:
    """Store a job that has `text` in everything that somebody else decides."""
    short = text[:60]
    subject = job(
        "dead",
        task=text,
        queue=text,
        arguments={"args": [text], "kwargs": {text: text}},
        error_class=text,
        error_message=text,
        reason=short,
        created_by=text,
        schedule=short,
        limit_key=text,
        backend=short,
    )
    around(subject)
    attempt(
        subject, 2, worker=worker(name=text, host=text, version=short).pk,
        task=text, queue=text, error_class=text, error_message=text, traceback=text,
    )  # fmt: skip
    JobTag.objects.create(job_id=subject.pk, tag=text[:100])
    LogLine.objects.create(
        job_id=subject.pk, fence=2, number=1, logged_at=datetime(2026, 1, 1, tzinfo=UTC),
        level=40, logger=text, message=text,
    )  # fmt: skip
    Queue.objects.create(
        name=text, paused=True, paused_at=datetime(2026, 1, 1, tzinfo=UTC),
        paused_by=text, paused_reason=text,
    )  # fmt: skip
    return subject


@pytest.mark.parametrize("planted", [EVIL, TURNED], ids=["markup", "direction"])
def test_markup_and_marks_of_direction_are_shown_and_do_nothing(planted, admin):
    subject = plant(planted)
    pages = [
        page("job"), page("job", subject.pk), page("deadletter"), page("queue"), page("worker"),
        page("attempt"), page("jobtag"), page("action"), "/admin/jobqueue/",
        page("job", "matching", "requeue") + "?filter=state:dead",
    ]  # fmt: skip
    for address in pages:
        answer = admin.get(address)
        assert answer.status_code == 200, address
        assert_harmless(answer.text, address)
    if planted == EVIL:  # the box itself shows what was typed, as it was typed
        assert_harmless(admin.get(page("job"), {"q": planted}).text)
    confirm = {"action": "discard_selected", "_selected_action": [subject.pk], "index": "0"}
    assert_harmless(admin.post(page("job"), confirm).text)


def test_a_search_that_cannot_be_read_is_refused_in_place(admin):
    job("dead")
    answer = admin.get(page("job"), {"q": 'sate:dead "><script>alert(2)</script>'})
    assert answer.status_code == 200
    assert "Did you mean state?" in answer.text
    assert "^^^^" in answer.text
    assert_harmless(answer.text)


@pytest.mark.parametrize(
    "given", ["q=%00", "q=state%3A", "older_than=nonsense", "newer_than=%00", "state=nonsense",
              "period=9x", "task=%22", "queue=a%00b", "o=1", "p=9999999", "all=", "_facets=",
              "id__gt=1", "arguments__contains=a", "e=1", "_popup=1", "q=" + "a" * 5_000],
)  # fmt: skip
def test_no_query_string_breaks_the_list(given, admin):
    job("dead")
    assert admin.get(f"{page('job')}?{given}").status_code in (200, 302, 400)


def test_ten_megabytes_of_arguments_are_told_and_not_shown(admin):
    subject = job("dead", arguments={"args": ["x" * 10_000_000], "kwargs": {}})
    text = admin.get(page("job", subject.pk)).text
    assert "Too large to show" in text
    assert len(text) < 200_000
    assert len(admin.get(page("job")).text) < 200_000


def test_long_arguments_and_errors_are_cut(admin):
    subject = job(
        "dead", arguments={"args": ["y" * 500_000], "kwargs": {}}, error_message="z" * 10**6
    )
    attempt(subject, error_message="z" * 10**6, traceback="t" * 10**5)
    text = admin.get(page("job", subject.pk)).text
    assert "The first 64 KiB of" in text
    assert len(text) < 500_000


@pytest.mark.sqlite_only("PostgreSQL refuses what is not JSON")
def test_arguments_that_are_not_json_are_shown_as_they_are(admin):
    subject = job("dead")
    run_sql(
        connection,
        "UPDATE jobqueue_job SET arguments = %s WHERE id = %s",
        ["{broken <b>", subject.pk.hex],
    )
    text = admin.get(page("job", subject.pk)).text
    assert "This is not JSON" in text
    assert "{broken &lt;b&gt;" in text
    admin.post(page("job", subject.pk, "do", "requeue"))
    assert Job.objects.get(pk=subject.pk).state == "ready"


@pytest.mark.parametrize(
    "stored",
    [[], None, "text", 7, {"args": 1}, {"args": [], "kwargs": {}, "more": [[[[{}]]]]}],
    ids=repr,
)
def test_arguments_of_any_shape_are_shown(stored, admin):
    subject = job("dead", arguments=stored if stored is not None else {})
    assert admin.get(page("job", subject.pk)).status_code == 200
    assert admin.get(page("job", "submit"), {"again": subject.pk}).status_code == 200


def test_rows_of_an_older_release_and_far_times_are_shown(admin):
    far = datetime(9999, 12, 30, 23, 59, tzinfo=UTC)
    subject = job(
        "dead", task="gone.app.task", max_attempts=None, error_class="", error_message="",
        error_fingerprint="", reason="", run_at=far, expires_at=far, attempts=0, failures=0,
        fence=0,
    )  # fmt: skip
    attempt(subject, due_at=None, error_class="", error_message="", traceback="", worker=uuid4())
    waits = job("scheduled", run_at=far, queue="no such queue", backend="gone")
    runs = job("running")  # its worker has no row
    for each in (subject, waits, runs):
        assert admin.get(page("job", each.pk)).status_code == 200
    text = admin.get(page("job") + "?state=any").text
    assert "9999-12-30" in text
    assert "gone.app.task" in text


def test_what_is_gone_leads_back_to_the_list(admin):
    everything()
    for model in ("job", "deadletter", "attempt", "action", "worker", "schedule", "bulkoperation",
                  "errorgroup"):  # fmt: skip
        for key in (uuid4(), "0", "%00", "nonsense"):
            assert admin.get(page(model, key)).status_code in (302, 404), (model, key)


@pytest.mark.parametrize("model", ["job", "deadletter", "attempt", "action", "jobtag", "schedule"])
def test_a_nul_in_the_address_is_refused(model, admin):
    names = ("q", "outcome", "verb", "worker", "error_class", "task", "reason")
    for name in names:
        assert admin.get(page(model), {name: "a\x00b"}).status_code == 400


def test_an_export_holds_no_formula_and_no_payload(as_staff):
    planted = ["=1+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "+1", 'plain, with "quotes"']
    jobs = [job("dead", task=text, error_message=text, queue=text) for text in planted]
    chosen = {
        "action": "export_selected",
        "_selected_action": [each.pk for each in jobs],
        "index": "0",
    }
    answer = as_staff("view_job").post(page("job"), chosen)
    rows = list(csv.reader(answer.text.splitlines()))
    assert len(rows) == 1 + len(planted)
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]
    assert "hunter2" not in answer.text
