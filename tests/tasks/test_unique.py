"""Unique jobs as an enqueue sees them: one job a key, and the caller's transaction stays whole."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from jobqueue import Unique, task
from jobqueue.compat import InvalidTask
from jobqueue.engine import uniqueness
from jobqueue.engine.uniqueness import KEY_WAIT_SECONDS
from jobqueue.exceptions import InvalidArgument, InvalidUniqueKey, KeyBusy
from jobqueue.models import Job
from jobqueue.storage import storage_for
from jobqueue.testing import eager, enqueued, run_due
from tests.app.models import Effect
from tests.storage.making import claim, register
from tests.tasks.making import rolled_back, run, set_state
from tests.tasks.uniques import (
    again,
    digest,
    export,
    fetch,
    index,
    mail,
    plain,
    push,
    rebuild,
    results,
    sync,
    with_context,
)

MOMENT = datetime(2030, 5, 1, 12, tzinfo=UTC)


def key_of(result):
    return Job.objects.get(pk=result.id).unique_key


# --- what is a twin -----------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_second_job_of_the_same_arguments_is_not_made():
    first, second = sync.enqueue(1), sync.enqueue(1)
    assert second.id == first.id
    assert (first.already_enqueued, second.already_enqueued) == (False, True)
    assert Job.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((1,), {}), ((), {"account": 1}), ((1, False), {"since": None}), ((1,), {"full": False})],
    ids=str,
)
def test_calls_that_mean_the_same_are_twins(args, kwargs):
    first = sync.enqueue(1)
    assert sync.enqueue(*args, **kwargs).id == first.id


@pytest.mark.django_db
@pytest.mark.parametrize("account", ["1", 1.0, True, [1], None, {"a": 1}], ids=repr)
def test_values_that_differ_as_json_are_not(account):
    assert sync.enqueue(1).id != sync.enqueue(account).id


@pytest.mark.django_db
def test_the_order_of_a_dict_and_the_type_of_a_sequence_do_not_count():
    first = sync.enqueue({"a": 1, "b": (2, 3)})
    assert sync.enqueue({"b": [2, 3], "a": 1}).id == first.id


@pytest.mark.django_db
def test_some_arguments_may_decide_alone():
    first = mail.enqueue("kim", "hello")
    assert mail.enqueue("kim", text="again").id == first.id
    assert mail.enqueue("lee", "hello").id != first.id


@pytest.mark.django_db
def test_a_callable_makes_the_key_or_leaves_a_job_without_one():
    assert key_of(index.enqueue(7)) == "account:7"
    assert index.enqueue(account=7, text="x").already_enqueued
    assert [key_of(index.enqueue(0)) for _ in range(2)] == [None, None]


@pytest.mark.django_db
def test_the_context_is_no_argument_and_variable_ones_are():
    first = with_context.enqueue(1, 2, x=3)
    assert with_context.enqueue(1, 2, x=3).id == first.id
    assert with_context.enqueue(1, 2, x=4).id != first.id
    assert with_context.enqueue(1, 2).id != first.id


@pytest.mark.django_db
def test_a_key_of_ones_own_makes_any_task_unique_and_is_of_that_task_alone():
    keyed = plain.using(unique_key="nightly")
    first = keyed.enqueue(1)
    assert keyed.enqueue(2).id == first.id
    assert plain.enqueue(1).id != first.id
    assert mail.using(unique_key="nightly").enqueue("kim").id != first.id
    assert plain.get_result(first.id).task == keyed


@pytest.mark.django_db
def test_one_job_of_a_unique_task_may_go_without():
    first = sync.enqueue(1)
    assert sync.using(unique=False).enqueue(1).id != first.id
    assert key_of(sync.using(unique_key="a", unique=False).enqueue(1)) is None


@pytest.mark.django_db
def test_arguments_cannot_be_read_from_a_key():
    assert key_of(sync.enqueue("a secret")).startswith("arguments:")
    assert "secret" not in key_of(sync.enqueue("a secret"))


@pytest.mark.django_db
def test_a_long_key_is_hashed_and_never_cut():
    long = "x" * 300
    first, second = (plain.using(unique_key=long + end).enqueue() for end in "ab")
    assert first.id != second.id
    assert plain.using(unique_key=long + "a").enqueue().id == first.id
    assert len(key_of(first)) == 255
    assert key_of(plain.using(unique_key="x" * 255).enqueue()) == "x" * 255


@pytest.mark.parametrize("key", ["", "a\x00b", "\ud800", 5, b"x", ["x"]], ids=repr)
def test_a_key_that_cannot_be_stored_is_refused(key):
    with pytest.raises(InvalidUniqueKey):
        plain.using(unique_key=key)


@pytest.mark.django_db
def test_what_a_callable_returns_is_checked_before_any_statement():
    bad = index.using(unique=lambda account, **rest: account)
    with transaction.atomic():
        with pytest.raises(InvalidUniqueKey):
            bad.enqueue_many([(("fine",), {}), ((5,), {})])
        assert Job.objects.count() == 0


# --- how long -----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_by_default_a_job_that_runs_is_no_twin_it_may_have_read_old_data():
    first = sync.enqueue(1)
    set_state(first, "running")
    assert sync.enqueue(1).id != first.id


@pytest.mark.django_db
def test_until_done_a_running_job_is_a_twin_and_shows_that_it_runs():
    first = export.enqueue(1)
    set_state(first, "running")
    second = export.enqueue(1)
    assert (second.id, second.job_state, second.already_enqueued) == (first.id, "running", True)
    set_state(first, "succeeded", worker=None, claimed_at=None, deadline=None)
    assert export.enqueue(1).id != first.id


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["running", "succeeded", "dead", "cancelled"])
def test_within_its_window_a_job_is_a_twin_whatever_its_state(state):
    first = digest.enqueue(1)
    set_state(first, state)
    again = digest.enqueue(1)
    assert (again.id, again.job_state) == (first.id, state)


@pytest.mark.django_db
def test_after_its_window_an_ended_job_makes_room_and_a_live_one_does_not():
    first = digest.enqueue(1)
    set_state(first, "running")
    over = timezone.now() - timedelta(seconds=1)
    Job.objects.update(unique_window_end=over)
    assert digest.enqueue(1).id == first.id
    set_state(first, "succeeded", worker=None, claimed_at=None, deadline=None)
    Job.objects.update(unique_window_end=over)
    second = digest.enqueue(1)
    assert (second.id != first.id, second.already_enqueued) == (True, False)
    assert digest.enqueue(1).id == second.id


# --- what becomes of the twin -------------------------------------------------------------------


@pytest.mark.django_db
def test_a_twin_that_is_kept_stays_as_it_is():
    first = mail.using(priority=3).enqueue("kim", "hello")
    again = mail.using(priority=9, run_after=MOMENT).enqueue("kim", "again")
    assert (again.args, again.task.priority, again.job_state) == (["kim", "hello"], 3, "ready")
    assert Job.objects.get().version == 1
    assert first.args == again.args


@pytest.mark.django_db
def test_a_twin_takes_over_what_replaces_it():
    first = push.enqueue("kim", "old")
    again = push.using(priority=9, expires=MOMENT).enqueue("kim", "new")
    assert (again.id, again.args, again.task.priority) == (first.id, ["kim", "new"], 9)
    assert Job.objects.get().expires_at == MOMENT
    first.refresh()
    assert (first.args, first.already_enqueued) == (["kim", "new"], False)


@pytest.mark.django_db
def test_a_twin_is_rescheduled_to_when_the_new_job_would_have_run(sent_hints):
    first = rebuild.using(run_after=timedelta(hours=1)).enqueue("kim", "old")
    again = rebuild.using(run_after=MOMENT).enqueue("kim", "new")
    assert (again.id, again.args, again.job_state) == (first.id, ["kim", "old"], "scheduled")
    assert Job.objects.get().run_at == MOMENT
    assert rebuild.enqueue("kim").job_state == "ready"


@pytest.mark.django_db
def test_a_running_twin_is_left_alone():
    changing = export.using(unique=Unique(until="done", on_conflict="replace"))
    first = changing.enqueue(1)
    set_state(first, "running")
    before = Job.objects.values().get()
    assert changing.using(priority=5).enqueue(1).already_enqueued
    assert Job.objects.values().get() == before


def test_a_twin_that_becomes_ready_is_hinted_at_and_one_that_is_kept_is_not(committing, sent_hints):
    rebuild.using(run_after=MOMENT).enqueue("kim")
    assert sent_hints == []
    rebuild.enqueue("kim")
    assert sent_hints == [("default", {"default"})]
    mail.enqueue("kim")
    mail.enqueue("kim")
    assert len(sent_hints) == 2


@pytest.mark.django_db
def test_only_new_jobs_are_announced(announced):
    results = sync.enqueue_many([((n,), {}) for n in (1, 2, 1)])
    sync.enqueue(2)
    assert [heard.id for heard in announced] == [results[0].id, results[1].id]


# --- many at once -------------------------------------------------------------------------------


@pytest.mark.django_db
def test_each_call_of_many_has_its_own_outcome_in_order():
    old = sync.enqueue(2)
    results = sync.enqueue_many([((n,), {}) for n in (1, 2, 3, 1)])
    assert [r.already_enqueued for r in results] == [False, True, False, True]
    assert (results[1].id, results[3].id) == (old.id, results[0].id)
    assert [r.args for r in results] == [[1], [2], [3], [1]]
    assert Job.objects.count() == 3


@pytest.mark.django_db
def test_a_large_batch_with_some_keys_taken_costs_no_query_a_job(
    django_assert_max_num_queries,
):
    taken = [sync.enqueue(n).id for n in (1, 5_000, 9_999)]
    with django_assert_max_num_queries(60):
        results = sync.enqueue_many([((n,), {}) for n in range(10_000)] + [((3,), {}), ((4,), {})])
    assert Job.objects.count() == 10_000
    kept = [n for n, result in enumerate(results) if result.already_enqueued]
    assert kept == [1, 5_000, 9_999, 10_000, 10_001]
    assert [results[n].id for n in kept[:3]] == taken
    assert results[10_000].id == results[3].id


@pytest.mark.django_db
def test_one_call_that_cannot_travel_stops_all_before_any_row():
    with transaction.atomic():
        with pytest.raises(TypeError):
            sync.enqueue_many([((1,), {}), ((object(),), {})])
        assert Job.objects.count() == 0


@pytest.mark.django_db
def test_of_several_replacements_the_last_counts():
    results = push.enqueue_many([push.bind("kim", text) for text in ("a", "b", "c")])
    assert [r.args for r in results] == [["kim", "c"]] * 3
    assert Job.objects.get().arguments["args"] == ["kim", "c"]


@pytest.mark.django_db
def test_jobs_with_and_without_a_key_go_together():
    results = index.enqueue_many([((n,), {}) for n in (0, 7, 0, 7)])
    assert len({r.id for r in results}) == 3
    assert [r.already_enqueued for r in results] == [False, False, False, True]
    assert index.enqueue_many([]) == []


@pytest.mark.django_db(transaction=True)
def test_the_async_ways_are_the_same():
    async def main():
        return [await fetch.aenqueue("u"), *await fetch.aenqueue_many([(("u",), {})])]

    first, second = run(main())
    assert (second.id, second.already_enqueued) == (first.id, True)


# --- the caller's transaction -------------------------------------------------------------------


def in_thread(action):
    """Run `action` in another thread, with its own connection; return what it returned."""
    found = []

    def call():
        try:
            found.append(action())
        except Exception as error:
            found.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(60)
    return found[0]


def test_a_job_goes_with_its_callers_rollback_and_leaves_the_key_free(committing):
    with rolled_back():
        first = sync.enqueue(1)
        assert sync.enqueue(1).id == first.id
    assert Job.objects.count() == 0
    assert not sync.enqueue(1).already_enqueued


def test_a_conflict_leaves_the_callers_transaction_whole(committing):
    first = sync.enqueue(1)
    with transaction.atomic():
        Effect.objects.create(job_id="before")
        assert sync.enqueue(1).id == first.id
        Effect.objects.create(job_id="after")
    assert Effect.objects.count() == 2


only_on_postgres = pytest.mark.postgres_only("SQLite has one writer: nothing happens meanwhile")


@only_on_postgres
def test_a_key_that_stays_locked_is_busy_and_the_transaction_goes_on(committing, monkeypatch):
    monkeypatch.setattr(uniqueness, "KEY_WAIT_SECONDS", 0.2)

    def meanwhile():
        with transaction.atomic():
            Effect.objects.create(job_id="before")
            with pytest.raises(KeyBusy, match="try again"):
                sync.enqueue_many([((1,), {}), ((2,), {})])
            Effect.objects.create(job_id="after")
            sync.enqueue(3)

    with transaction.atomic():
        sync.enqueue(1)
        assert in_thread(meanwhile) is None
    assert sorted(Job.objects.values_list("arguments", flat=True), key=str) == [
        {"args": [1], "kwargs": {}},
        {"args": [3], "kwargs": {}},
    ]
    assert Effect.objects.count() == 2


@only_on_postgres
def test_a_twin_does_not_start_before_the_caller_commits(committing):
    """Seen without the lock: it ran, had read the old row, and no job was left to read the new."""
    first = sync.enqueue(1)
    storage = storage_for(connection)
    worker = register(storage, tasks=(sync.module_path,))

    def claimed():
        return claim(storage_for(connection), worker, tasks=[sync.module_path])

    with transaction.atomic():
        Effect.objects.create(job_id="what the job must see")
        assert sync.enqueue(1).already_enqueued
        assert in_thread(claimed) == []
    assert [str(held.id) for held in in_thread(claimed)] == [first.id]


@only_on_postgres
def test_two_that_enqueue_in_opposite_order_get_the_databases_own_error(committing):
    """Nothing is retried in a transaction of somebody else; many at once never get there."""
    met, errors = threading.Barrier(2), []

    def enqueue(first, second):
        try:
            with transaction.atomic():
                sync.enqueue(first)
                met.wait(30)
                sync.enqueue(second)
        except (OperationalError, KeyBusy) as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=enqueue, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [getattr(error.__cause__, "sqlstate", None) for error in errors] == ["40P01"]
    assert Job.objects.count() == 2


def test_a_hundred_at_once_make_one_job_a_key_whichever_way_they_come(committing):
    threads_count, keys = 10, 5
    start, found, errors = threading.Barrier(threads_count), Counter(), []

    def enqueue(number):
        try:
            connection.ensure_connection()
            start.wait(30)
            calls = [((n,), {}) for n in range(keys)]
            for n in range(10):
                order = calls if (number + n) % 2 else calls[::-1]
                if n % 3:
                    results = sync.enqueue_many(order)
                else:
                    results = [sync.enqueue(*args) for args, _ in order]
                found.update((r.args[0], r.id, r.already_enqueued) for r in results)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=enqueue, args=(n,)) for n in range(threads_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert Job.objects.count() == keys
    made = [key for key in found if not key[2]]
    assert len(made) == keys
    assert sum(found.values()) == threads_count * 10 * keys
    assert len({job_id for _, job_id, _ in found}) == keys


@pytest.mark.django_db
def test_a_holder_that_slips_away_every_time_is_said_so(monkeypatch):
    first = sync.enqueue(1)
    monkeypatch.setattr(uniqueness, "_keep", lambda *args: {})
    with pytest.raises(KeyBusy, match="faster"):
        sync.enqueue(1)
    assert [str(pk) for pk in Job.objects.values_list("pk", flat=True)] == [first.id]


def test_waiting_is_bounded():
    assert KEY_WAIT_SECONDS <= 10


# --- where it is defined ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unique",
    [
        "account",
        5,
        [],
        ["nobody"],
        ["context"],
        [1],
        {"keys": ["account"]},
        {"until": "never"},
        {"window": 0},
        {"window": -1},
        {"window": True},
        {"window": "1h"},
        {"window": timedelta(days=5_000)},
        {"window": 60, "until": "start"},
        {"on_conflict": "fail"},
        {"key": False},
    ],
    ids=repr,
)
def test_rules_that_make_no_sense_are_refused_where_the_task_is_defined(unique):
    with pytest.raises((InvalidTask, ValueError)):
        sync.using(unique=unique)


def unstorable(account, options=frozenset()): ...


def test_a_default_that_json_cannot_hold_needs_another_key():
    with pytest.raises(InvalidTask, match=r"options .*unique key|unique key.*options"):
        task(unique=True)(unstorable)
    assert task(unique=["account"])(unstorable).unique is not None


def test_the_rules_are_part_of_a_task_and_have_defaults():
    assert sync.unique == Unique()
    assert (sync.unique.until, digest.unique.until, digest.unique.window) == ("start", "done", 60.0)
    assert mail.unique.key == ("account",)
    assert plain.using(unique_key="x").unique == Unique()
    assert hash(mail) == hash(mail.using())
    assert issubclass(InvalidUniqueKey, InvalidArgument)


# --- rows in a test -----------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_unique_job_runs_and_lets_the_next_one_in():
    sync.enqueue(1)
    assert [job.return_value for job in run_due().jobs] == [[1, False, None]]
    assert not sync.enqueue(1).already_enqueued


# --- eager --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_an_eager_job_that_has_run_is_no_twin_and_one_that_waits_is():
    with eager() as jobs:
        assert not any(sync.enqueue(1).already_enqueued for _ in range(2))
        later = sync.using(run_after=MOMENT)
        first, second = later.enqueue(2), later.enqueue(2)
        assert (second.id, second.already_enqueued, first.already_enqueued) == (
            first.id,
            True,
            False,
        )
        assert enqueued(sync) == jobs
    assert [job.job_state for job in jobs] == ["succeeded", "succeeded", "scheduled"]


@pytest.mark.django_db
@pytest.mark.parametrize(("until", "is_kept"), [("start", False), ("done", True)])
def test_an_eager_job_that_runs_holds_its_key_if_it_says_so(until, is_kept):
    results.clear()
    rules = Unique(key=again.unique.key, until=until)
    with eager() as jobs:
        again.using(unique=rules).enqueue(until)
    assert [result.already_enqueued for result in results] == [is_kept]
    assert len(jobs) == (1 if is_kept else 2)


@pytest.mark.django_db
def test_an_eager_job_holds_its_key_within_its_window():
    with eager() as jobs:
        results = digest.enqueue_many([((1,), {}), ((1,), {}), ((2,), {})])
    assert [r.already_enqueued for r in results] == [False, True, False]
    assert (results[1].return_value, len(jobs)) == (1, 2)


@pytest.mark.django_db
def test_an_eager_twin_is_replaced_and_rescheduled():
    with eager() as jobs:
        push.using(run_after=timedelta(minutes=5)).enqueue("kim", "old")
        assert push.using(priority=7).enqueue("kim", "new").args == ["kim", "new"]
        rebuild.using(run_after=MOMENT).enqueue("kim", "old")
        moved = rebuild.using(run_after=MOMENT + timedelta(days=1)).enqueue("kim", "new")
        assert moved.task.run_after == MOMENT + timedelta(days=1)
        assert rebuild.enqueue("kim").return_value == ["kim", "old"]
    assert (jobs[0].args, jobs[0].task.priority) == (["kim", "new"], 7)
    assert [job.job_state for job in jobs] == ["scheduled", "succeeded"]
