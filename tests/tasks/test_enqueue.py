"""Enqueue: in the caller's transaction, checked before the first row, never breaking it."""

import enum
import math
import threading
import uuid
import warnings
from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, connections, models, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from jobqueue.compat import TaskResultStatus
from jobqueue.conf import BACKEND_PATH, ENQUEUE_CHUNK, options_for
from jobqueue.engine import enqueue as enqueue_module
from jobqueue.engine.enqueue import creator, trace_carrier
from jobqueue.exceptions import ForeignTransactionWarning, InvalidArgument, PayloadTooLarge
from jobqueue.models import Job, JobTag
from jobqueue.storage import Storage, storage_for
from tests.app.models import Effect
from tests.tasks.making import rolled_back, run
from tests.tasks.samples import add, echo, fetch, names, names_with_context, report, send

TWO_DATABASES = {
    "default": {"BACKEND": BACKEND_PATH, "QUEUES": ["default", "mail"]},
    "other": {"BACKEND": BACKEND_PATH, "OPTIONS": {"DATABASE": "other", "TIMEOUT": 7}},
}


def seen_by_others() -> set[str]:
    """Return the ids of the jobs that another session sees."""
    found = set()

    def look():
        found.update(str(pk) for pk in Job.objects.values_list("pk", flat=True))
        connections.close_all()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found


# --- the caller's transaction --------------------------------------------------------------------


def test_outside_a_transaction_a_job_is_committed_when_the_call_returns(committing):
    assert add.enqueue(1).id in seen_by_others()


def test_a_job_is_seen_only_after_the_callers_outer_commit_with_one_hint(committing, sent_hints):
    with transaction.atomic():
        Effect.objects.create(job_id="x")
        with transaction.atomic():
            result = add.enqueue(1)
        assert seen_by_others() == set()
        assert sent_hints == []
    assert seen_by_others() == {result.id}
    assert sent_hints == [("default", {"default"})]


def test_a_job_goes_with_the_callers_rollback_and_no_hint_is_sent(committing, sent_hints):
    with rolled_back():
        add.using(tags=["t"]).enqueue(1)
        with transaction.atomic():
            add.enqueue_many([((n,), {}) for n in range(3)])
    assert Job.objects.count() == 0
    assert JobTag.objects.count() == 0
    assert sent_hints == []


def test_a_job_goes_with_the_rollback_of_its_savepoint_only(committing):
    with transaction.atomic():
        kept = add.enqueue(1)
        with rolled_back():
            add.enqueue(2)
    assert seen_by_others() == {kept.id}


def test_in_a_manual_transaction_the_job_is_the_callers_to_commit(committing, sent_hints):
    transaction.set_autocommit(False)
    try:
        result = add.enqueue(1)
        assert seen_by_others() == set()
        transaction.commit()
        assert seen_by_others() == {result.id}
        add.enqueue(2)
        transaction.rollback()
    finally:
        transaction.set_autocommit(True)
    assert seen_by_others() == {result.id}
    assert sent_hints == []  # nobody tells us of that commit; workers poll


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([math.nan], ValueError),
        (["a\x00b"], ValueError),
        (["\ud800"], ValueError),
        ([b"\xff"], ValueError),
        ([{1, 2}], TypeError),
        ([Decimal("1.10")], TypeError),
        ([uuid.uuid4()], TypeError),
        ([object()], TypeError),
        ([1, 2], TypeError),
        ([], TypeError),
        (["x" * (1024 * 1024 + 1)], PayloadTooLarge),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_arguments_that_cannot_travel_leave_the_callers_transaction_whole(arguments, error):
    with transaction.atomic():
        with pytest.raises(error):
            echo.enqueue(*arguments)
        Effect.objects.create(job_id="the transaction is alive")
    assert Job.objects.count() == 0
    assert Effect.objects.count() == 1


@pytest.mark.django_db
def test_a_database_error_surfaces_as_it_is_and_nothing_is_tried_again(monkeypatch):
    tries = []

    class Deadlock(DatabaseError):
        pass

    def insert_jobs(self, jobs, now=None):
        tries.append(len(jobs))
        raise Deadlock("deadlock detected")

    monkeypatch.setattr(type(storage_for(connection)), "insert_jobs", insert_jobs)
    with pytest.raises(Deadlock), transaction.atomic():
        add.enqueue(1)
    with pytest.raises(Deadlock):
        add.enqueue_many([((1,), {})] * 3)
    assert tries == [1, 3]


# --- what a job carries --------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_new_job_is_ready_and_unstarted():
    result = send.enqueue("a@b", subject="hi")
    assert uuid.UUID(result.id).version == 7
    assert (result.status, result.job_state) == (TaskResultStatus.READY, "ready")
    assert (result.args, result.kwargs) == (["a@b"], {"subject": "hi"})
    assert (result.started_at, result.finished_at, result.last_attempted_at) == (None, None, None)
    assert (result.errors, result.worker_ids, result.attempts) == ([], [], 0)
    assert result.backend == "default"
    assert result.task == send
    job = Job.objects.get(pk=result.id)
    assert job.task == "tests.tasks.samples.send"
    assert (job.queue, job.priority, job.max_attempts, job.timeout) == ("mail", 10, 8, 30)
    assert job.enqueued_at == result.enqueued_at
    assert job.arguments == {"args": ["a@b"], "kwargs": {"subject": "hi"}}
    assert (job.created_by, job.trace_context) == ("", None)


@pytest.mark.django_db
def test_the_result_has_the_arguments_as_the_job_will_see_them():
    result = report.enqueue((1, 2), {1: "a"}, key=b"bytes")
    assert result.args == [[1, 2], {"1": "a"}]
    assert result.kwargs == {"key": "bytes"}
    assert report.get_result(result.id) == result


@pytest.mark.django_db
def test_keywords_may_have_the_names_of_our_own_parameters():
    given = {"task": 1, "job": 2, "self": 3, "args": 4, "queue": 5, "name": 6, "func": 7}
    assert names.enqueue(**given).kwargs == given
    assert names.enqueue_many([names.bind(**given)])[0].kwargs == given
    given = {"task": 1, "self": 2, "args": 3, "kwargs": 4}
    assert names_with_context.enqueue(**given).kwargs == given
    assert run(_without_database(names, {"self": 1}))

    with pytest.raises(TypeError, match="context"):
        names_with_context.enqueue(context=1)


async def _without_database(task, kwargs):
    """Return whether aenqueue passes the keywords on; the database belongs to another thread."""
    with pytest.raises(TypeError, match="no_such"):
        await task.aenqueue(**kwargs, no_such=1)
    return True


@pytest.mark.django_db
def test_the_surface_says_who_makes_jobs_and_under_which_trace():
    headers = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    tokens = creator.set("staff:ada" + "x" * 300 + "\x00"), trace_carrier.set(headers)
    try:
        result = add.enqueue(1)
    finally:
        creator.reset(tokens[0])
        trace_carrier.reset(tokens[1])
    job = Job.objects.get(pk=result.id)
    assert job.created_by.startswith("staff:ada")
    assert len(job.created_by) <= 255
    assert job.trace_context == headers


def test_enqueue_from_a_coroutine(committing):
    async def caller():
        one = await fetch.aenqueue("u")
        many = await fetch.aenqueue_many([fetch.bind("a"), fetch.bind("b")])
        assert (await fetch.aget_result(one.id)) == one
        return [one, *many]

    results = run(caller())
    assert {result.id for result in results} == seen_by_others()


# --- many ----------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_many_jobs_come_back_in_the_order_of_their_calls_and_their_ids_ascend():
    calls = [((n,), {}) if n % 2 else add.bind(n, b=1) for n in range(50)]
    results = add.enqueue_many(calls)
    assert [result.args for result in results] == [[n] for n in range(50)]
    assert [result.id for result in results] == sorted(result.id for result in results)
    assert {str(pk) for pk in Job.objects.values_list("pk", flat=True)} == {r.id for r in results}


@pytest.mark.django_db
def test_no_calls_are_no_jobs(announced):
    assert add.enqueue_many([]) == []
    assert add.enqueue_many(iter(())) == []
    assert announced == []


def statements(captured):
    """Return the first words of the captured statements."""
    return [query["sql"].split()[0].upper() for query in captured]


def test_many_jobs_are_one_insert_a_chunk_in_one_transaction(committing, sent_hints):
    calls = (((n,), {}) for n in range(2 * ENQUEUE_CHUNK + 1))
    with CaptureQueriesContext(connection) as captured:
        add.enqueue_many(calls)
    seen = statements(captured)
    assert (seen[0], seen[-1]) == ("BEGIN", "COMMIT")
    assert sum("INSERT INTO" in query["sql"] for query in captured) == 3
    if connection.vendor == "postgresql":
        assert len(seen) == 5
    assert Job.objects.count() == 2 * ENQUEUE_CHUNK + 1
    assert sent_hints == [("default", {"default"})]


@pytest.mark.postgres_only("SQLite has to take its write lock first")
def test_a_single_job_is_a_single_statement(committing, sent_hints):
    with CaptureQueriesContext(connection) as captured:
        add.enqueue(1)
    assert len(captured) == 1


def test_one_bad_call_among_many_refuses_them_all_and_says_which(committing):
    with pytest.raises(TypeError) as caught:
        add.enqueue_many([((1,), {}), ((2,), {}), (({3},), {})])
    assert caught.value.__notes__ == ["In call 2 of enqueue_many()."]
    assert Job.objects.count() == 0


@pytest.mark.parametrize(
    "call", [(1,), [1, 2], ("ab", {}), ((1,), [("b", 2)]), ((1,), {2: 3}), 5, None, ((1,), {}, 1)]
)
@pytest.mark.django_db
def test_what_is_no_pair_of_arguments_is_refused(call):
    with pytest.raises(InvalidArgument, match="Call 0 is not a pair"):
        add.enqueue_many([call])


def test_a_failing_chunk_takes_the_earlier_ones_with_it_also_in_the_callers_transaction(
    committing, monkeypatch
):
    monkeypatch.setattr(enqueue_module, "ENQUEUE_CHUNK", 2)
    storage_class = type(storage_for(connection))
    real, seen = storage_class.insert_jobs, []

    def insert_jobs(self, jobs, now=None):
        seen.append(len(jobs))
        if len(seen) == 2:
            raise DatabaseError("connection reset")
        return real(self, jobs, now)

    monkeypatch.setattr(storage_class, "insert_jobs", insert_jobs)
    with transaction.atomic():
        with pytest.raises(DatabaseError):
            add.enqueue_many([((n,), {}) for n in range(4)])
        Effect.objects.create(job_id="alive")
    assert (Job.objects.count(), Effect.objects.count()) == (0, 1)


@pytest.mark.django_db
def test_large_arguments_make_small_statements(monkeypatch):
    monkeypatch.setattr(enqueue_module, "CHUNK_CHARACTERS", 1_000)
    storage_class = type(storage_for(connection))
    real, sizes = storage_class.insert_jobs, []

    def insert_jobs(self, jobs, now=None):
        sizes.append(len(jobs))
        return real(self, jobs, now)

    monkeypatch.setattr(storage_class, "insert_jobs", insert_jobs)
    texts = ["x" * 300] * 7 + ["x" * 5_000, "y"]
    results = echo.enqueue_many([((text,), {}) for text in texts])
    assert [result.args[0] for result in results] == texts
    assert sizes == [3, 3, 1, 1, 1]


@pytest.mark.django_db
def test_tags_are_written_with_the_jobs():
    results = report.using(tags=["order:1", "vip"]).enqueue_many([report.bind(), report.bind()])
    for result in results:
        tags = JobTag.objects.filter(job_id=result.id).values_list("tag", flat=True)
        assert set(tags) == {"order:1", "vip"}


@pytest.mark.django_db
def test_jobs_are_found_by_their_tag():
    first = report.using(tags=["order:1", "vip"]).enqueue()
    second = report.using(tags=["order:2", "vip"]).enqueue()
    report.using(tags=["order:11"]).enqueue()
    assert [str(job.pk) for job in Job.objects.tagged("order:1")] == [first.id]
    assert {str(job.pk) for job in Job.objects.tagged("vip")} == {first.id, second.id}
    assert not Job.objects.tagged("order:1").filter(state="dead").exists()
    assert not Job.objects.tagged("%").exists()


# --- databases and aliases -----------------------------------------------------------------------


@pytest.mark.django_db(databases=["default", "other"])
def test_the_alias_decides_in_which_database_a_job_lives():
    with override_settings(TASKS=TWO_DATABASES):
        result = add.using(backend="other").enqueue(1)
        assert (result.backend, result.task.backend) == ("other", "other")
        assert Job.objects.using("other").get().timeout == 7
        assert Job.objects.using("default").count() == 0
        assert add.using(backend="other").get_result(result.id) == result
        assert options_for("other").database == "other"


@pytest.mark.django_db(databases=["default", "other"])
def test_routers_are_not_asked(settings):
    settings.DATABASE_ROUTERS = ["tests.tasks.routers.EverythingElsewhere"]
    result = add.enqueue(1)
    assert Job.objects.using("default").filter(pk=result.id).exists()
    assert add.get_result(result.id) == result


def test_enqueue_inside_a_transaction_of_another_database_warns(committing):
    with transaction.atomic(using="other"):
        with pytest.warns(ForeignTransactionWarning, match="'other'") as caught:
            add.enqueue(1)
        assert caught[0].filename == __file__
        with transaction.atomic(), warnings.catch_warnings():
            warnings.simplefilter("error")
            add.enqueue(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add.enqueue(3)


def test_a_storage_class_of_the_options_is_used(committing):
    tasks = {
        "default": {
            "BACKEND": BACKEND_PATH,
            "OPTIONS": {"STORAGE": "tests.tasks.test_enqueue.Full"},
        }
    }
    with override_settings(TASKS=tasks), pytest.raises(DatabaseError, match="disk full"):
        add.enqueue(1)


class Full(Storage):
    def insert_jobs(self, jobs, now=None):
        raise DatabaseError("disk full")


@pytest.mark.django_db
def test_members_of_an_enum_name_queues_and_tags_by_their_values():
    class Lane(str, enum.Enum):  # noqa: UP042 - the older way, whose str() is another
        MAIL = "mail"

    class Kind(models.TextChoices):
        URGENT = "urgent"

    result = add.using(queue_name=Lane.MAIL, tags=[Lane.MAIL, Kind.URGENT]).enqueue(1)
    assert Job.objects.get(pk=result.id).queue == "mail"
    assert sorted(JobTag.objects.values_list("tag", flat=True)) == ["mail", "urgent"]
