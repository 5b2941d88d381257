"""Lists by key: each row once, whatever comes and goes, never counted; filters are one filter."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobqueue.admin import lists
from jobqueue.admin.jobs import JobAdmin
from jobqueue.engine import job_walks
from jobqueue.models import Attempt, Job
from tests.admin.making import attempt, job, page

pytestmark = pytest.mark.django_db

OLDER = re.compile(r'rel="next" href="([^"]+)"')
NEWER = re.compile(r'rel="prev" href="([^"]+)"')


@pytest.fixture
def pages_of_three(monkeypatch):
    monkeypatch.setattr(JobAdmin, "list_per_page", 3)


def rows(text: str) -> list[str]:
    found = re.findall(r"/admin/jobqueue/job/([0-9a-f-]{36})/change/", text)
    return list(dict.fromkeys(found))


def follow(admin, text: str, link: re.Pattern[str]) -> str | None:
    found = link.search(text)
    return admin.get(page("job") + found[1].replace("&amp;", "&")).text if found else None


def test_older_and_newer_show_each_job_once(admin, pages_of_three):
    made = sorted((str(job("ready").pk) for _ in range(8)), reverse=True)
    text, seen = admin.get(page("job")).text, []
    assert not NEWER.search(text), "nothing is newer than the newest"
    while text is not None:
        seen += rows(text)
        last, text = text, follow(admin, text, OLDER)
    assert seen == made
    assert rows(follow(admin, last, NEWER)) == made[3:6]
    assert rows(follow(admin, follow(admin, last, NEWER), NEWER)) == made[:3]


def test_jobs_that_come_and_go_move_no_page(admin, pages_of_three):
    made = sorted((str(job("ready").pk) for _ in range(6)), reverse=True)
    first = admin.get(page("job")).text
    job("ready"), Job.objects.filter(pk=made[1]).delete()
    assert rows(follow(admin, first, OLDER)) == made[3:6]


def test_the_pages_keep_the_filter(admin, pages_of_three):
    made = sorted((str(job("dead", queue="mail").pk) for _ in range(4)), reverse=True)
    job("dead"), job("ready", queue="mail")
    text = admin.get(page("job"), {"q": "queue:mail", "state": "dead"}).text
    assert rows(text) + rows(follow(admin, text, OLDER)) == made


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "ready"),
        ({"state": "any"}, "ready dead succeeded"),
        ({"state": "dead"}, "dead"),
        ({"q": "state:succeeded"}, "succeeded"),
        ({"q": "queue:mail"}, "dead"),
        ({"queue": "mail"}, ""),
        ({"queue": "mail", "state": "dead"}, "dead"),
        ({"state": "live"}, "ready"),
        ({"task": "app.other", "state": "any"}, "succeeded"),
        ({"error": "yes", "q": "-state:succeeded"}, "dead"),
        ({"error": "no"}, "ready"),
        ({"q": "error:NoSuchOrder"}, "dead"),
        ({"q": "no such"}, "dead"),
        ({"schedule": "nightly", "state": "any"}, "succeeded"),
        ({"period": "1h"}, ""),
        ({"q": "-state:dead"}, "ready"),
        ({"q": "args.0:42 state:dead"}, "dead"),
    ],
    ids=str,
)
def test_search_and_sidebar_are_one_filter(given, expected, admin):
    made = {
        str(job("ready").pk): "ready",
        str(job("dead", queue="mail").pk): "dead",
        str(job("succeeded", task="app.other", schedule="nightly").pk): "succeeded",
    }
    found = {made[key] for key in rows(admin.get(page("job"), given).text)}
    assert found == set(expected.split())


def test_an_id_finds_its_job_whatever_its_state(admin):
    subject = job("succeeded")
    text = admin.get(page("job"), {"q": f"id:{subject.pk} state:any"}).text
    assert rows(text) == [str(subject.pk)]


def bulk_link(text: str, verb: str) -> str | None:
    found = re.search(rf'href="([^"]*/matching/{verb}/[^"]+)"', text)
    return found and found[1].replace("&amp;", "&")


def test_all_that_match_is_what_the_list_shows(admin):
    """A list that shows dead jobs only must not lead to a requeue of cancelled ones, too."""
    job("dead"), job("cancelled"), job("ready")
    searched = admin.get(page("job"), {"q": "queue:default"}).text
    assert "requeue: 1 job" in admin.get(bulk_link(searched, "requeue")).text.lower()
    live = admin.get(page("job")).text
    assert bulk_link(live, "requeue") is None, "none of these is dead"
    preview = admin.get(bulk_link(live, "cancel")).text
    assert "cancel: 1 job" in preview.lower()
    states = "state:scheduled,ready,blocked,running,retrying"
    assert preview.count(states) == live.count(f">{states}<") + 1 == 2, "word for word"


def test_no_list_counts_reads_large_columns_or_compares_distinct(admin):
    for _ in range(3):
        attempt(job("dead"))
    for model in ("job", "deadletter", "attempt", "jobtag", "action", "bulkoperation"):
        with CaptureQueriesContext(connection) as captured:
            admin.get(page(model))
        ours = [q["sql"] for q in captured if "jobqueue_" in q["sql"]]
        assert ours
        for sql in ours:
            assert "COUNT(" not in sql.upper().replace("STATE_COUNT", "")
            assert "DISTINCT" not in sql.upper()
            for column in ("arguments", "result", "traceback", "trace_context"):
                assert f'"{column}"' not in sql, sql


def test_a_search_that_finds_little_stops_and_goes_on_when_asked(
    admin, monkeypatch, pages_of_three
):
    monkeypatch.setattr(job_walks, "WINDOW", 2)
    first = job("succeeded", queue="mail")
    for _ in range(12):
        job("succeeded")
    text = admin.get(page("job"), {"q": "state:succeeded queue:mail"}).text
    assert "The search stopped here" in text
    looked = 0
    while not rows(text):
        text, looked = follow(admin, text, OLDER), looked + 1
    assert rows(text) == [str(first.pk)]
    assert looked <= 3


def test_history_is_listed_the_newest_first(admin, monkeypatch):
    monkeypatch.setattr(lists, "LOOKS", 1)
    subject = job("dead")
    made = [attempt(subject, number, outcome="lost").pk for number in range(1, 4)]
    attempt(subject, 4, outcome="failed")
    text = admin.get(page("attempt"), {"outcome": "lost"}).text
    found = [int(key) for key in re.findall(r"/attempt/(\d+)/change/", text)]
    assert found == made[::-1]
    assert Attempt.objects.count() == 4
