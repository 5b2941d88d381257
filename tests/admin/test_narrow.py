"""On a phone rows are blocks, so each value needs the name of its column beside it."""

import re

import pytest

from jobqueue.models import Tick
from tests.admin.making import NOW, everything, job, page, worker

pytestmark = pytest.mark.django_db

LISTS = ("job", "deadletter", "worker", "schedule", "bulkoperation", "action", "attempt", "jobtag")
TABLES = [
    ("queue",), ("errorgroup",), ("limit",), ("errorgroup", "errorgroup"), ("worker", "worker"),
    ("schedule", "schedule"), ("job", "job"),
]  # fmt: skip
ROWS = re.compile(r"<tbody>(.*?)</tbody>", re.DOTALL)
CELL = re.compile(r"<td[^>]*>")


def unnamed(table: str) -> list[str]:
    """Return the cells of a table's rows that do not name their column."""
    cells = CELL.findall(ROWS.search(table)[1])
    assert cells
    return [each for each in cells if "data-label=" not in each and "action-checkbox" not in each]


@pytest.mark.parametrize("model", LISTS)
def test_each_cell_of_a_list_names_its_column(model, admin):
    everything()
    job("ready")
    text = admin.get(page(model)).text
    assert unnamed(text[text.index('id="result_list"') :]) == []


@pytest.mark.parametrize("address", TABLES, ids="/".join)
def test_each_cell_of_a_wide_table_names_its_column(address, admin):
    keys = everything()
    busy = worker()
    job("running", worker=busy.pk)
    tick = {"tick": NOW, "at": NOW, "outcome": "overlap"}
    Tick.objects.create(schedule_id=keys["schedule"], **tick)
    key = busy.pk if address[-1] == "worker" else keys.get(address[-1])
    text = admin.get(page(address[0], *([key] if len(address) > 1 else []))).text
    tables = text.split('<div class="jq-scroll"')[1:]
    assert tables
    assert [unnamed(table) for table in tables] == [[] for _ in tables]


def test_the_filters_and_all_that_match_are_one_link_away(admin):
    everything()
    text = admin.get(page("deadletter")).text
    top = text.index('id="result_list"')
    for target in ("changelist-filter", "jq-matching-title"):
        assert text.index(f'href="#{target}"') < top
        assert text.count(f'id="{target}"') == 1
