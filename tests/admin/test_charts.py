"""A chart says how much its highest bar is, from when to when it reaches, and what failed."""

from datetime import UTC, datetime, timedelta

import pytest

from jobqueue.admin import charts
from jobqueue.models import Rollup
from tests.admin.making import page

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_a_chart_has_a_scale_and_a_period():
    starts = [NOON + timedelta(minutes=n) for n in range(3)]
    drawn = charts.bars(starts, [4, 0, 67], "Ended", step_seconds=60, failed=[1, 0, 2])
    assert drawn["most"] == "The highest bar: 67 in 1 min"
    assert "12:00:00" in drawn["first"]
    assert "12:03:00" in drawn["last"], "the last step has an end, too"
    assert drawn["failed"] == "3"
    assert [row[1:] for row in drawn["rows"]] == [("4", "1"), ("67", "2")]


@pytest.mark.parametrize("failed", [(), [0, 0], [4, 5]])
def test_where_all_or_none_failed_no_legend_is_needed(failed):
    starts = [NOON, NOON + timedelta(minutes=1)]
    assert charts.bars(starts, [4, 5], "Ended", step_seconds=60, failed=failed)["failed"] == ""


@pytest.mark.django_db
def test_the_list_of_queues_and_a_queues_page_count_the_same(admin):
    at = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=10)
    ended = {"succeeded": 7, "failed": 4, "lost": 2}
    for queue, name in (("default", "app.one"), ("default", "app.two"), ("mail", "app.one")):
        Rollup.objects.create(seconds=60, kind="task", at=at, queue=queue, name=name, **ended)
    assert '>26, <span class="jq-bad">8 failed</span> <svg' in admin.get(page("queue")).text
    text = admin.get(page("queue", "default")).text
    assert "The highest bar: 26 in 1 min" in text
    assert "8 failed" in text
