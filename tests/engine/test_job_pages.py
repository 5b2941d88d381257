"""Pages of jobs: each job once and in order, by whatever indexes they are found."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from uuid import UUID

import pytest

from jobqueue.engine import job_pages, job_walks
from jobqueue.engine.job_pages import JobPage, job_page
from jobqueue.exceptions import InvalidArgument
from jobqueue.filters import DEFAULT_STATES, matching, parse
from jobqueue.ids import new_job_id
from jobqueue.models import Job, JobTag
from jobqueue.states import FINISHED, State

pytestmark = pytest.mark.django_db

WORKER = UUID("0fe1c8a2-6c0d-4c55-8a39-0d9c41f1b7aa")
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def job(state: str, **changes) -> Job:
    """Return a job in a state, not saved."""
    is_running, has_ended = state == State.RUNNING, state in FINISHED
    fields = {
        "id": new_job_id(),
        "backend": "default",
        "task": "app.task",
        "queue": "default",
        "state": state,
        "arguments": {"args": [], "kwargs": {}},
        "run_at": NOW,
        "rank": 0,
        "enqueued_at": NOW,
        "max_attempts": 5,
        "timeout": 60.0,
        "worker": WORKER if is_running else None,
        "claimed_at": NOW if is_running else None,
        "deadline": NOW + timedelta(hours=1) if is_running else None,
        "finished_at": NOW if has_ended else None,
        "reason": "unknown task" if state == State.BLOCKED else "",
    }
    return Job(**fields | changes)


@pytest.fixture
def history() -> list[Job]:
    """Sixty jobs in all states, of two queues, three creators and some tags."""
    chance = random.Random(7)
    jobs = [
        job(
            chance.choice(list(State)),
            queue=chance.choice(["default", "mail"]),
            created_by=chance.choice(["", "kim", "sam"]),
            error_fingerprint=chance.choice(["a" * 32, "b" * 32]),
        )
        for _ in range(60)
    ]
    Job.objects.bulk_create(jobs)
    tagged = [each for each in jobs if chance.random() < 0.2]
    JobTag.objects.bulk_create(JobTag(job_id=each.id, tag="order:42") for each in tagged)
    return sorted(jobs, key=lambda each: each.id, reverse=True)


FILTERS = (
    "",
    "state:any",
    "state:dead",
    "state:dead fingerprint:" + "a" * 32,
    "state:cancelled queue:mail",
    "state:succeeded",
    "state:succeeded,dead queue:mail",
    "state:ready",
    "state:running,ready queue:mail",
    "state:waiting",
    "state:live -queue:mail",
    "tag:order:42",
    "tag:order:42 state:any queue:mail",
    "created_by:kim state:any",
    "worker:0fe1c8a2-6c0d-4c55-8a39-0d9c41f1b7aa state:any",
    "nothing-contains-this state:any",
    "state:dead -state:dead",
)
SIZES = {
    "as they are": {},
    "states have many jobs": {"SMALL": 3, "WINDOW": 1_000},
    "windows end within a page": {"SMALL": 3, "WINDOW": 4},
    "walks stop early": {"SMALL": 3, "WINDOW": 2, "LOOKS": 2},
}


@pytest.mark.parametrize("sizes", SIZES)
def test_walking_there_and_back_shows_each_matching_job_once(history, sizes, monkeypatch):
    for name, value in SIZES[sizes].items():
        monkeypatch.setattr(job_pages if name == "SMALL" else job_walks, name, value)
    for text, owner in (*product(FILTERS, [None]), *product(FILTERS[:4], ["sam"])):
        chosen = parse(text)
        rows = matching(Job.objects.all(), chosen, NOW, default=DEFAULT_STATES)
        rows = rows if owner is None else rows.filter(created_by=owner)
        expected = list(rows.order_by("-id").values_list("id", flat=True))
        page = partial(job_page, chosen, default=DEFAULT_STATES, owner=owner, limit=7)
        oldest = history[-1].id
        assert walked(page, "older") == expected, (text, owner)
        back = walked(partial(page, newer_than=oldest), "newer")
        assert back[::-1] == [each for each in expected if each != oldest], (text, owner)


def walked(page: Callable[..., JobPage], way: str) -> list[UUID]:
    """Return the ids on all pages, one way."""
    current = page()
    if way == "older":
        assert current.newer is None
    seen: list[UUID] = []
    while True:
        ids = [each.id for each in current.jobs]
        seen += ids if way == "older" else ids[::-1]
        beyond = getattr(current, way)
        assert len(ids) == 7 or current.is_partial or beyond is None
        if beyond is None:
            return seen
        current = page(**{f"{way}_than": beyond})


def test_a_job_that_comes_while_somebody_pages_moves_nothing(history):
    first = job_page(limit=5)
    Job.objects.bulk_create([job("ready")])
    second = job_page(limit=5, older_than=first.older)
    assert [each.id for each in second.jobs] == [each.id for each in history[5:10]]
    assert [each.id for each in job_page(limit=5, newer_than=second.newer).jobs] == [
        each.id for each in history[:5]
    ]


def test_no_page_reads_arguments_and_results(history):
    (first, *_) = job_page().jobs
    assert first.get_deferred_fields() == {"arguments", "result", "trace_context"}


@pytest.mark.parametrize("limit", [0, -1, 1_001])
def test_a_page_has_a_limit(limit):
    with pytest.raises(InvalidArgument, match="1 to 1000"):
        job_page(limit=limit)


def test_a_page_has_one_edge_and_an_owner_a_name():
    with pytest.raises(InvalidArgument, match="not both"):
        job_page(older_than=new_job_id(), newer_than=new_job_id())
    with pytest.raises(InvalidArgument, match="nobody"):
        job_page(owner="")


def test_the_usual_lists_take_few_queries(history, django_assert_max_num_queries):
    with django_assert_max_num_queries(3):
        job_page(default=DEFAULT_STATES)
    with django_assert_max_num_queries(5):
        job_page(parse("queue:mail state:waiting"))
