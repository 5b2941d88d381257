"""What a filter finds, on either database; and that it never reads the history for live jobs."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings

from jobqueue import filters, task
from jobqueue.exceptions import InvalidFilter
from jobqueue.filters import Filter, Term, bindings_of, matching, parse, pinned, states_of
from jobqueue.models import Job
from jobqueue.states import State
from tests.filters import test_syntax
from tests.storage.making import FAILURE, analyze, claimed, ending, insert, register, run_sql
from tests.storage.test_operators import in_every_state
from tests.storage.test_plans import BACKLOG, fill, nodes

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@task
def send(user_id, address=None, *, urgent=False):
    pass


@task(takes_context=True)
def charge(context, user_id):
    pass


@task
def log_in(name, password):
    pass


def found(text: str, **options) -> list[UUID]:
    chosen = parse(text)
    options.setdefault("bindings", bindings_of(chosen))
    rows = matching(Job.objects.all(), chosen, NOW, **options).order_by("id")
    return list(rows.values_list("id", flat=True))


# --- states ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("", {"scheduled", "ready", "blocked", "running", "retrying", "dead"}),
        ("state:dead", {"dead"}),
        ("state:dead,ready", {"dead", "ready"}),
        ("state:waiting", {"scheduled", "ready", "blocked", "retrying"}),
        ("state:finished -state:dead", {"succeeded", "cancelled"}),
        ("state:any", set(State)),
        ("-state:running", {"scheduled", "ready", "blocked", "retrying", "dead"}),
        ("state:dead state:ready", set()),
        ("state:dead -state:dead", set()),
    ],
)
def test_states_are_those_that_are_named(storage, text, states):
    jobs = in_every_state(storage)
    assert states_of(parse(text)) == states
    assert set(found(text)) == {jobs[state] for state in states}


def test_states_can_be_restricted_by_who_asks(storage):
    jobs = in_every_state(storage)
    assert found("", default=frozenset({State.DEAD})) == [jobs["dead"]]


# --- columns --------------------------------------------------------------------------------------


@pytest.fixture
def jobs(storage) -> dict[str, UUID]:
    """Jobs that differ in what filters look at, by a name."""
    worker = register(storage, name="web-1", host="shop.example")
    plain = {"now": NOW - HOUR}
    made = {
        "mail": {"queue": "mail", "tags": ("order:42", "vip"), "priority": 5},
        "bulk": {"queue": "mail-bulk", "task": "shop.tasks.send", "created_by": "kim"},
        "plain": {"task": "shop.tasks.charge", "priority": -3, "tags": ("order:43",)},
    }
    ids = {name: insert(storage, **plain, **changes)[0] for name, changes in made.items()}
    held = claimed(storage, worker, queue="default")
    storage.end_many([ending(held, "dead", outcome="failed", charged=True, error=FAILURE)])
    ids["dead"] = held.id
    ids["running"] = claimed(storage, worker).id
    Job.objects.filter(id=ids["plain"]).update(
        schedule="nightly", copied_from=ids["dead"], attempts=2, fence=2, failures=1
    )
    Job.objects.filter(id=ids["bulk"]).update(enqueued_at=NOW - 48 * HOUR, run_at=NOW + HOUR)
    Job.objects.filter(id=ids["dead"]).update(finished_at=NOW - HOUR)
    return ids


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("queue:mail", "mail"),
        ("queue:mail,mail-bulk", "mail bulk"),
        ("queue:mail*", "mail bulk"),
        ("queue:*bulk", "bulk"),
        ("queue:*ail-b*", "bulk"),
        ("-queue:mail*", "plain dead running"),
        ('queue:"mail*"', ""),
        ("task:shop.tasks.send", "bulk"),
        ("task:shop.*", "bulk plain"),
        ("tag:order:42", "mail"),
        ("tag:order:42,order:43", "mail plain"),
        ("tag:order:42 tag:vip", "mail"),
        ("-tag:vip queue:mail*", "bulk"),
        ("error:ValueError", "dead"),
        ("error:builtins.ValueError", "dead"),
        ("error:Value*", "dead"),
        ("error:Error", ""),
        ("error:*", "dead"),
        ("-error:* state:live", "mail bulk plain running"),
        ("message:ORDER", "dead"),
        (f"fingerprint:{'0' * 32}", "dead"),
        ("worker:web-1", "running"),
        ("worker:shop.*", "running"),
        ("-worker:web-1 state:live", "mail bulk plain"),
        ("schedule:nightly", "plain"),
        ("schedule:*", "plain"),
        ("created_by:kim", "bulk"),
        ("priority:5", "mail"),
        ("priority:5,-3", "mail plain"),
        ("priority>0", "mail"),
        ("priority<=-3", "plain"),
        ("-priority>0 state:ready", "bulk plain"),
        ("attempts>=2", "plain"),
        ("failures:1 state:ready", "plain"),
        ("created<-1d", "bulk"),
        ("created<2026-05-31", "bulk"),
        ("run_at>now queue:mail*", "bulk"),
        ("run_at<=2026-06-01T15:00:00+02:00 run_at>now", "bulk"),
        ("finished>-2h", "dead"),
        ("finished>-30m", ""),
        ("charge", "plain"),
        ("SHOP", "bulk plain"),
        ("valueerror", "dead"),
        ('"such order"', "dead"),
        ('-"such order" state:dead', ""),
        ("send charge", ""),
        ("backend:default queue:mail", "mail"),
    ],
)
def test_terms_find_what_they_say(jobs, text, names):
    by_id = {job_id: name for name, job_id in jobs.items()}
    assert {by_id[job_id] for job_id in found(text)} == set(names.split())


def test_ids_find_their_jobs(jobs):
    one, other = jobs["mail"], jobs["dead"]
    assert set(found(f"id:{one},{other}")) == {one, other}
    assert found(str(one)) == [one]
    assert found(f"copied_from:{other}") == [jobs["plain"]]
    assert found(f"worker:{Job.objects.get(id=jobs['running']).worker}") == [jobs["running"]]


def test_reason_tells_why_a_job_is_blocked(storage):
    jobs = in_every_state(storage)
    assert found('reason:"unknown task"') == [jobs["blocked"]]


# --- arguments ------------------------------------------------------------------------------------

SEND, CHARGE, LOG_IN = (f"{__name__}.{name}" for name in ("send", "charge", "log_in"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"args":[],"kwargs":{"user_id":42}}', "args.user_id:42"),
        ('{"args":[],"kwargs":{"user_id":"42"}}', "args.user_id:42"),
        ('{"args":[42],"kwargs":{}}', "args.0:42"),
        ('{"args":[42],"kwargs":{}}', "args.user_id:7,42"),
        ('{"args":[],"kwargs":{"urgent":true}}', "args.urgent:true"),
        ('{"args":[],"kwargs":{"share":0.5}}', "args.share:0.5"),
        (
            '{"args":[],"kwargs":{"o":{"lines":[{"sku":"tea pot"}]}}}',
            'args.o.lines.0.sku:"tea pot"',
        ),
        ('{"args":[],"kwargs":{"o":{"0":"zero"}}}', "args.o.0:zero"),
        ('{"args":[],"kwargs":{"a.b c":"x"}}', 'args."a.b c":x'),
        ('{"args":[1,{"city":"Oslo"}],"kwargs":{}}', "args.address.city:Oslo"),
    ],
)
def test_arguments_are_found_by_name_and_position(storage, arguments, text):
    (job_id,) = insert(storage, arguments=arguments, task=SEND)
    insert(storage, arguments='{"args":[1],"kwargs":{"user_id":1,"urgent":false}}', task=SEND)
    insert(storage)
    assert found(text) == [job_id]
    assert job_id not in found(f"-{text}")


@pytest.mark.parametrize("text", ["args.1:hunter2", "args.01:hunter2"])
def test_what_its_name_keeps_secret_is_not_found_by_its_position(storage, text):
    arguments = '{"args":["kim","hunter2"],"kwargs":{}}'
    insert(storage, arguments=arguments, task=LOG_IN)
    (other,) = insert(storage, arguments='{"args":[1,"hunter2"],"kwargs":{}}', task=SEND)
    assert set(found(text)) <= {other}
    assert found("args.1:hunter2") == [other]
    assert found("args.0:kim") != []


def test_position_is_that_of_the_tasks_own_function(storage):
    """The context is none of the arguments; and a name of one task says nothing of another."""
    arguments = '{"args":[7,42],"kwargs":{}}'
    insert(storage, arguments=arguments, task=SEND)
    insert(storage, arguments=arguments, task="other.task")
    (charged,) = insert(storage, arguments='{"args":[42],"kwargs":{}}', task=CHARGE)
    assert found("args.user_id:42") == [charged]


def test_positions_are_kept_with_the_filter(storage):
    """Another process, which does not know the task, finds the same."""
    (job_id,) = insert(storage, arguments='{"args":[42],"kwargs":{}}', task=SEND)
    bindings = bindings_of(parse("args.user_id:42"))
    assert set(bindings["user_id"]["0"]) >= {SEND, CHARGE}
    assert found("args.user_id:42", bindings=bindings) == [job_id]
    assert found("args.user_id:42", bindings={}) == []


def test_null_and_nothing_are_not_found(storage):
    insert(storage, arguments='{"args":[null],"kwargs":{"user_id":null}}', task=SEND)
    assert found("args.user_id:null") == found("args.0:null") == []
    assert len(found("-args.user_id:null")) == 1


@pytest.mark.sqlite_only("PostgreSQL stores no document that is not JSON")
def test_document_that_is_no_json_hides_no_other(storage):
    broken, whole = insert(storage, 2, arguments='{"args":[42],"kwargs":{}}')
    broken_row = "UPDATE jobqueue_job SET arguments = '{' WHERE id = %s"
    run_sql(storage.connection, broken_row, [broken.hex])
    assert found("args.0:42") == [whole]
    assert found("-args.0:42") == [broken]


# --- times ----------------------------------------------------------------------------------------


def test_time_without_an_offset_is_of_the_current_zone(storage):
    insert(storage, run_at=datetime(2027, 1, 1, 0, 30, tzinfo=UTC))
    with timezone.override("Europe/Oslo"):
        assert found("run_at>2027-01-01T01:00") != []
        assert found("run_at>2027-01-01T02:00") == []
        assert found("run_at>=2027-01-01") != []


def test_pinned_filter_means_the_same_later(storage):
    chosen = parse("created>-2h run_at<2026-06-01 state:dead -finished<now")
    written = str(pinned(chosen, NOW, timezone.get_fixed_timezone(60)))
    assert written == (
        "created>2026-06-01T10:00:00+00:00 run_at<2026-05-31T23:00:00+00:00 state:dead "
        "-finished<2026-06-01T12:00:00+00:00"
    )
    assert str(pinned(parse(written), NOW + HOUR, UTC)) == written


def test_time_beyond_the_calendar_is_refused():
    with pytest.raises(InvalidFilter, match="between 1970 and 9999"):
        parse("created>-99999w")
    with pytest.raises(InvalidFilter, match="no time"):
        parse("created>9999-12-31T23:59:59-12:00")


# --- any filter -----------------------------------------------------------------------------------


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=test_syntax.filters)
def test_whatever_can_be_written_can_be_asked(jobs, chosen):
    """And each job matches either a term or its opposite."""
    rows = matching(Job.objects.all(), chosen, NOW, bindings=BINDINGS)
    assert rows.count() <= len(jobs)
    for term in chosen.terms:
        if term.key != "state":
            opposite = replace(term, is_negated=not term.is_negated)
            assert count_of(term) + count_of(opposite) == len(jobs)


BINDINGS = {"a": {"0": ["shop.tasks.send"]}}


def count_of(term: Term) -> int:
    chosen = Filter((*parse("state:any").terms, term))
    return matching(Job.objects.all(), chosen, NOW, bindings=BINDINGS).count()


# --- plans ----------------------------------------------------------------------------------------


@pytest.mark.postgres_only("SQLite plans without looking at the rows")
def test_live_and_dead_jobs_are_found_without_the_history(storage):
    for n, rows in enumerate(BACKLOG):
        fill(first=n * 1_000_000, **rows)
    analyze("jobqueue_job")
    wrong = {}
    for text in ("state:dead args.0:42", "state:running,blocked x", "state:dead,retrying x", "x"):
        rows = matching(Job.objects.order_by("-id"), parse(text), NOW)[:50]
        (document,) = json.loads(rows.explain(format="json"))
        kinds = {(n["Node Type"], n.get("Index Name")) for n in nodes(document["Plan"])}
        if any(kind == "Seq Scan" for kind, _ in kinds):
            wrong[text] = kinds
    assert wrong == {}


def test_keys_are_documented_with_examples_that_parse():
    for key in filters.KEYS.values():
        if key.name != "fingerprint":
            assert parse(key.example).terms[0].key == key.name
        assert key.meaning
