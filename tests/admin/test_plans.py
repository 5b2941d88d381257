"""No page reads a big table as a whole, however much lies in it; plans, not times."""

import pytest
from django.db import connection

from benchmarks.crowd import fill
from benchmarks.pages import LISTS, MAX_QUERIES, looks
from jobqueue.engine import job_walks
from tests.storage.making import analyze

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.postgres_only("its planner is asked"),
]


def test_every_list_filter_search_and_page_stays_on_indexes(admin, monkeypatch):
    """Windows are as small beside this table as theirs are beside millions of rows."""
    monkeypatch.setattr(job_walks, "WINDOW", 1_000)
    fill(connection, finished=30_000, live=6_000)
    analyze(*(f"jobqueue_{t}" for t in ("job", "attempt", "jobtag", "errorgroup", "worker")))
    found = list(looks(admin, connection, times=0))
    assert len(found) > len(LISTS)
    assert not [(one.name, one.whole) for one in found if one.whole]
    assert not [(one.name, one.queries) for one in found if one.queries > MAX_QUERIES]
