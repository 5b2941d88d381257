"""However long history and backlog are, no page of jobs reads through them in vain.

The rows are committed and vacuumed, as a table is that lives for a while: else no index answers
alone, and a planner may find that reading this small table whole is cheaper than ten thousand
looks into it.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobqueue.engine.job_pages import job_page
from jobqueue.engine.job_walks import WINDOW
from jobqueue.filters import DEFAULT_STATES, parse
from jobqueue.models import Job
from tests.storage.making import analyze, run_sql
from tests.storage.test_plans import ATTEMPTS, BACKLOG, fill, nodes

pytestmark = pytest.mark.django_db(transaction=True)

HISTORY = {"state": "succeeded", "count": 60_000, "ran": 1, "first": 900_000_000}
"""Newer than all else, so that whatever is looked for lies behind it."""
TABLES = {"jobqueue_job", "jobqueue_jobtag", "jobqueue_attempt"}
TAGS = """
INSERT INTO jobqueue_jobtag (job_id, tag)
SELECT id, 'order:' || row_number() OVER (ORDER BY id) / 3 FROM jobqueue_job
WHERE state IN ('dead', 'blocked')
"""
LISTS = (
    "state:dead",
    "state:dead queue:queue7",
    "state:dead fingerprint:0123",
    "state:cancelled task:app.task7",
    "state:scheduled queue:queue7",
    "state:retrying",
    "state:blocked reason:limit",
    "state:ready",
    "state:ready queue:queue7",
    "state:any",
    "state:any queue:nowhere",
    "state:any args.user_id:42",
    "tag:order:42",
    "created_by:kim state:any",
    "x",
    "",
)


def faults(sql: str) -> set[str]:
    """Return the tables that a query reads whole, and those that it walks in vain."""
    (found,) = run_sql(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
    document = found[0] if isinstance(found[0], list) else json.loads(found[0])
    plan = list(nodes(document[0]["Plan"]))
    hopes = [child for node in plan if node["Node Type"] == "Limit" for child in node["Plans"]]
    in_vain = [node for node in hopes if node.get("Rows Removed by Filter", 0) > WINDOW]
    whole = [node for node in plan if node["Node Type"] == "Seq Scan"]
    return {node["Relation Name"] for node in in_vain + whole} & TABLES


def selects(text: str, **options: Any) -> Iterator[str]:
    with CaptureQueriesContext(connection) as queries:
        job_page(parse(text), default=DEFAULT_STATES, **options)
    return (query["sql"] for query in queries if query["sql"].startswith(("SELECT", "WITH")))


@pytest.mark.postgres_only("SQLite plans without looking at the rows")
def test_no_page_reads_through_the_history_or_the_backlog():
    for n, rows in enumerate((*BACKLOG, {"state": "cancelled", "count": 0}, HISTORY)):
        fill(**{"first": n * 1_000_000, **rows})
    run_sql(connection, TAGS)
    run_sql(connection, ATTEMPTS)
    analyze(*TABLES, vacuum=True)
    middle = Job.objects.filter(state="scheduled").order_by("id")[20_000].id
    wrong = {}
    for text in LISTS:
        for where in ({}, {"older_than": middle}, {"newer_than": middle}):
            for sql in selects(text, **where):
                if found := faults(sql):
                    wrong[text, str(where), sql] = found
    assert wrong == {}
