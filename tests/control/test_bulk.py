"""Bulk operations: each job has its turn once, whatever stops, dies or locks in between."""

import subprocess
import sys
import threading
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection, connections, transaction
from django.db.models import F
from django.utils import timezone

from jobqueue import control, events, hints
from jobqueue.engine import bulk, bulk_steps, bulk_walk
from jobqueue.engine.bulk_steps import run_step
from jobqueue.exceptions import BulkOperationNotFound, InvalidArgument, WrongState
from jobqueue.ids import new_job_id
from jobqueue.models import Action, BulkOperation, Job
from jobqueue.states import FINISHED
from tests.storage.making import claimed, ending, multiply, row, run_sql, states
from tests.storage.test_operators import in_every_state

SECOND = timedelta(seconds=1)


def make(count: int, state: str = "dead", **changes) -> list:
    """Insert jobs straight into the table; ids ascend."""
    now = timezone.now() - SECOND  # before whatever begins next, also where clocks are coarse
    ended = {"finished_at": now, "attempts": 1, "fence": 1} if state in FINISHED else {}
    values = {
        "backend": "default",
        "task": "app.task",
        "queue": "default",
        "state": state,
        "arguments": {"args": [], "kwargs": {}},
        "run_at": now,
        "rank": 0,
        "enqueued_at": now,
        "timeout": 60.0,
        "error_class": "builtins.ValueError" if state == "dead" else "",
        **ended,
        **changes,
    }
    ids = sorted(new_job_id() for _ in range(count))
    Job.objects.create(id=ids[0], **values)
    multiply(ids[0], ids[1:])
    return ids


def steps(operation, most: int = 100) -> BulkOperation:
    """Carry out steps to the end, or so many, without waiting; return it as it is then."""
    now = timezone.now()
    for _ in range(most):
        run_step("default", operation.pk, now=now)
        operation.refresh_from_db()
        if not operation.is_running:
            break
        now = operation.wait_until or now
    return operation


def versions() -> Counter:
    return Counter(Job.objects.values_list("version", flat=True))


@pytest.fixture
def small(monkeypatch):
    """Portions of two jobs."""
    monkeypatch.setattr(bulk_walk, "MAX_ROWS", 2)


# --- the walk -------------------------------------------------------------------------------------


def test_3000_dead_letters_over_ten_minutes_stopped_half_way_and_resumed_each_once(storage, actor):
    ids = make(3_000, error_message="no such order")
    make(10, error_class="builtins.KeyError")

    operation = control.bulk_start(
        "requeue", actor, filter="state:dead error:ValueError", spread=600
    )
    assert (operation.total, operation.total_is_capped) == (3_000, False)
    soon = timezone.now() + timedelta(minutes=1)  # what is due before its step ends, is due then
    run_step("default", now=soon)
    control.bulk_stop(operation.pk, actor)
    assert run_step("default") is None
    halfway = Job.objects.filter(state__in=("ready", "scheduled")).count()
    assert halfway == 1_000

    control.bulk_resume(operation.pk, actor)
    operation = steps(operation)

    assert (operation.state, operation.counts) == ("finished", {"requeued": 3_000})
    assert versions() == {2: 3_000, 1: 10}
    assert Job.objects.filter(state="dead").count() == 10
    due = list(Job.objects.filter(id__in=ids).order_by("id").values_list("run_at", flat=True))
    gaps = {round((after - before).total_seconds(), 3) for before, after in pairwise(due)}
    assert (due[0], gaps) == (soon, {0.2})
    for minute in range(1, 10):  # the clock moved: a tenth each minute
        storage.promote(10_000, now=operation.paced_from + timedelta(minutes=minute))
        ready = Job.objects.filter(id__in=ids, state="ready").count()
        assert abs(ready - 300 * minute) <= 2


def test_job_that_dies_again_meanwhile_is_not_taken_twice(storage, actor, small):
    ids = make(6)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    run_step("default")
    now = timezone.now() + SECOND
    for job_id in (ids[0], ids[-1]):  # one behind the cursor, one before it
        Job.objects.filter(id=job_id).update(state="dead", finished_at=now, version=F("version"))

    operation = steps(operation)

    assert states(ids[0], ids[-1]) == ["dead", "dead"]
    assert operation.counts == {"requeued": 5}


def test_job_that_comes_later_is_not_taken(storage, actor, small):
    """New ones, and one that ran when the operation began."""
    running = claimed(storage)
    ids = make(3, "ready")
    operation = control.bulk_start("cancel", actor, filter="state:waiting")
    soon = timezone.now() + SECOND
    later = make(1, "ready", enqueued_at=soon)
    storage.end_many([ending(running, "retrying", outcome="failed", delay=60.0)], now=soon)
    operation = steps(operation)
    assert states(*ids) == ["cancelled"] * 3
    assert states(*later, running.id) == ["ready", "retrying"]


def test_job_that_moved_on_is_counted_with_why(storage, actor, monkeypatch):
    ids = make(3)
    operation = control.bulk_start("requeue", actor, ids=[*ids, new_job_id()])
    Job.objects.filter(id=ids[1]).update(state="cancelled")
    control.requeue([ids[1]], actor)

    operation = steps(operation)

    assert operation.counts == {"requeued": 2, "skipped: ready": 1, "not found": 1}


def test_rows_that_match_nothing_are_passed_in_bounded_looks(storage, actor, monkeypatch):
    monkeypatch.setattr(bulk_walk, "WINDOW", 3)
    monkeypatch.setattr(bulk_walk, "WINDOWS", 2)
    make(20, "succeeded")
    dead = make(1)
    make(20, "succeeded")
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    assert run_step("default").cursor is not None
    assert states(*dead) == ["dead"]
    assert steps(operation).counts == {"requeued": 1}


def test_list_of_ids_is_walked_once(storage, actor, small):
    ids = make(5)
    operation = control.bulk_start("discard", actor, ids=[*ids, str(ids[0])], reason="typo")
    assert operation.total == 5
    assert run_step("default").seen == 2
    assert steps(operation).counts == {"discarded": 5}
    assert {row(job_id).reason for job_id in ids} == {"typo"}


@pytest.mark.parametrize(
    ("verb", "options", "sources"),
    [
        ("requeue", {}, {"dead", "cancelled"}),
        ("requeue", {"run_at": timedelta(hours=1)}, {"dead", "cancelled"}),
        ("discard", {}, {"dead"}),
        ("cancel", {}, {"scheduled", "ready", "blocked", "retrying", "running"}),
        ("run_now", {}, {"scheduled", "ready", "blocked", "retrying"}),
        ("reprioritize", {"priority": 9}, {"scheduled", "ready", "blocked", "retrying"}),
        ("move", {"queue": "mail"}, {"scheduled", "ready", "blocked", "retrying"}),
        (
            "reschedule",
            {"run_at": timedelta(hours=1)},
            {"scheduled", "ready", "blocked", "retrying"},
        ),
    ],
)
def test_every_verb_changes_what_it_may_and_nothing_else(storage, actor, verb, options, sources):
    found = in_every_state(storage)
    before = {state: row(job_id).version for state, job_id in found.items()}
    operation = control.bulk_start(verb, actor, filter="state:any", **options)
    assert operation.total == len(sources)
    operation = steps(operation)
    assert sum(operation.counts.values()) == len(sources)
    changed = {state for state, job_id in found.items() if row(job_id).version != before[state]}
    assert changed == sources - {"running"}  # which is only asked


def test_running_jobs_are_asked_and_their_workers_are_not_kept_waiting(storage, other, actor):
    held = claimed(storage)
    (ready,) = make(1, "ready")
    operation = control.bulk_start("cancel", actor, filter="state:live")
    if storage.vendor == "postgresql":
        holder = hold(other, held.id)  # as its worker does that is about to finish
    operation = run_step("default")
    if storage.vendor == "postgresql":
        release(holder)
    assert operation.counts == {"cancelled": 1, "asked": 1}
    assert operation.state == "finished"
    assert states(held.id, ready) == ["running", "cancelled"]


def test_due_times_are_moved_back_when_steps_come_late(storage, actor, small):
    """Nobody carried it out for an hour: the rest must not be due together."""
    ids = make(4)
    control.bulk_start("requeue", actor, filter="state:dead", spread=40)
    run_step("default")
    later = timezone.now() + timedelta(hours=1)
    while run_step("default", now=later):
        pass
    due = [row(job_id).run_at for job_id in ids]
    assert due[1] < later - timedelta(minutes=50)
    assert due[2] >= later
    assert due[3] - due[2] == timedelta(seconds=10)


def test_of_dead_letters_of_one_unique_key_one_lives_on(storage, actor):
    """Item by item, as one by one: none of them fails the others."""
    keyed = [make(1, unique_key="k", unique_until="start")[0] for _ in range(3)]
    others = make(3)
    operation = steps(control.bulk_start("requeue", actor, filter="state:dead", spread=60))
    assert operation.state == "finished"
    assert operation.counts["requeued"] == 4
    assert sum(operation.counts.values()) == operation.seen == 6
    waiting = {"ready", "scheduled"}
    assert sum(state in waiting for state in states(*keyed)) == 1
    assert set(states(*others)) <= waiting


@pytest.fixture
def at_most_one_ready_in_mail():
    """A constraint that is not ours: as good a reason for a refusal as any."""
    run_sql(
        connection,
        "CREATE UNIQUE INDEX tests_one_ready ON jobqueue_job (queue) "
        "WHERE state = 'ready' AND queue = 'mail'",
    )
    yield
    run_sql(connection, "DROP INDEX tests_one_ready")


@pytest.mark.usefixtures("at_most_one_ready_in_mail")
def test_job_that_a_constraint_refuses_stops_no_other(storage, actor):
    ids = make(8)
    Job.objects.filter(id__in=ids[4:6]).update(queue="mail")
    operation = steps(control.bulk_start("requeue", actor, filter="state:dead"))
    assert (operation.state, operation.counts) == ("finished", {"requeued": 7, "refused": 1})
    assert sorted(states(*ids)) == ["dead"] + ["ready"] * 7
    (refused,) = Job.objects.filter(state="dead").values_list("id", flat=True)
    with pytest.raises(InvalidArgument, match="A constraint of the database"):
        control.require_change(control.requeue([refused], actor))


# --- locks ----------------------------------------------------------------------------------------


def hold(other, *ids):
    """Lock rows on another connection, as an admin's transaction does; return it."""
    holder = other.connection
    holder.set_autocommit(False)
    for job_id in ids:
        run_sql(holder, "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE", [job_id])
    return holder


def release(holder):
    holder.rollback()
    holder.set_autocommit(True)


@pytest.mark.postgres_only("SQLite has no row locks")
def test_locked_rows_are_tried_again_at_the_end(storage, other, actor):
    ids = make(5)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    holder = hold(other, ids[2])
    operation = run_step("default")
    assert operation.counts == {"requeued": 4}
    assert operation.left == [ids[2].hex]
    assert operation.state == "running"
    assert run_step("default") is None  # a pause comes first
    release(holder)
    assert steps(operation).counts == {"requeued": 5}
    assert versions() == {2: 5}


@pytest.mark.postgres_only("SQLite has no row locks")
def test_row_that_stays_locked_is_reported(storage, other, actor, monkeypatch):
    ids = make(4)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    monkeypatch.setattr(bulk_steps, "MAX_LEFT", 1)
    holder = hold(other, *ids[1:3])
    operation = steps(operation)
    release(holder)
    assert (operation.state, operation.counts) == ("finished", {"requeued": 2, "locked": 2})
    assert operation.left == [ids[1].hex]


def test_two_operations_and_many_hands_change_each_job_once(storage, actor, monkeypatch):
    monkeypatch.setattr(bulk_walk, "MAX_ROWS", 50)
    ids = make(600)
    one = control.bulk_start("requeue", actor, filter="state:dead", spread=60)
    two = control.bulk_start("discard", control.Actor("lee", "shell"), filter="state:dead")
    errors = []

    def work():
        try:
            for _ in range(60):
                run_step("default", now=timezone.now() + timedelta(hours=1))
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    one, two = steps(one), steps(two)
    assert errors == []
    assert {one.state, two.state} == {"finished"}
    done = Counter(one.counts) + Counter(two.counts)
    assert done["requeued"] + done["discarded"] == len(ids)
    assert versions() == {2: len(ids)}


@pytest.mark.postgres_only("SQLite has one writer: nothing moves on while a step reads")
def test_job_led_elsewhere_while_a_step_reads_is_not_taken_from_there(
    storage, other, actor, monkeypatch
):
    """A discarded job could be requeued; but it is not what the filter means."""
    (job_id,) = make(1)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    read = bulk_walk.next_ids

    def then_discarded(*given):
        ids = read(*given)
        assert other.discard_dead([job_id], "lee was faster") == [job_id]
        return ids

    monkeypatch.setattr(bulk_steps, "next_ids", then_discarded)
    assert steps(operation).counts == {"skipped: cancelled": 1}
    assert row(job_id).reason == "lee was faster"


# --- a process that dies --------------------------------------------------------------------------


def test_step_that_is_not_committed_leaves_the_cursor_where_it_was(
    storage, actor, small, monkeypatch
):
    ids = make(6)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    run_step("default")

    class Killed(BaseException):
        pass

    def die(self, *args, **kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(BulkOperation, "save", die)
        with pytest.raises(Killed):
            run_step("default")
    operation.refresh_from_db()
    assert (operation.seen, operation.cursor) == (2, ids[1])
    assert states(*ids) == ["ready"] * 2 + ["dead"] * 4
    assert steps(operation).counts == {"requeued": 6}
    assert versions() == {2: 6}
    assert Action.objects.get(pk=operation.action).count == 6


DYING = """
import os, sys
import django
django.setup()
from jobqueue.engine import bulk_walk
from jobqueue.engine.bulk_steps import run_step
from jobqueue.models import BulkOperation
bulk_walk.MAX_ROWS = 2
run_step("default")
save = BulkOperation.save
def die(self, **kwargs):
    save(self, **kwargs)
    os._exit(9)  # between the last statement of a step and its COMMIT
BulkOperation.save = die
run_step("default")
"""


def test_process_killed_in_a_step_leaves_it_to_the_next(storage, actor, child_environment):
    ids = make(6)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    ran = subprocess.run([sys.executable, "-c", DYING], env=child_environment, timeout=60)
    assert ran.returncode == 9
    assert states(*ids) == ["ready"] * 2 + ["dead"] * 4
    assert steps(operation).counts == {"requeued": 6}
    assert versions() == {2: 6}


def test_failing_steps_are_tried_again_and_give_up_with_the_reason(storage, actor, monkeypatch):
    make(2)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    seen = []
    monkeypatch.setattr(events, "_subscribers", [lambda event: seen.append(event.name)])
    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "requeue_many", lambda *args, **kwargs: 1 / 0)
        assert run_step("default").failures == 1
        assert run_step("default") is None  # a pause comes first
        operation = steps(operation, 10)
    assert (operation.state, operation.failures) == ("failed", 5)
    assert "ZeroDivisionError" in operation.error
    assert seen == ["bulk.failing"] * 4 + ["bulk.failed"]

    control.bulk_resume(operation.pk, actor)
    operation = steps(operation)
    assert (operation.state, operation.error, operation.counts) == ("finished", "", {"requeued": 2})


def test_queue_that_has_left_the_settings_fails_the_operation(storage, actor, settings):
    make(1, "ready")
    operation = control.bulk_start("move", actor, filter="state:ready", queue="mail")
    settings.TASKS = {"default": settings.TASKS["default"] | {"QUEUES": ["default"]}}
    operation = steps(operation, 10)
    assert operation.state == "failed"
    assert "not in QUEUES" in operation.error


# --- who, and what is said ------------------------------------------------------------------------


def test_one_action_row_counts_what_was_changed_and_others_say_who_stopped_it(
    storage, actor, small
):
    make(3)
    operation = control.bulk_start("requeue", actor, filter="state:dead", spread=60)
    run_step("default")
    lee = control.Actor("lee", "admin")
    control.bulk_stop(operation.pk, lee)
    control.bulk_resume(operation.pk, lee)
    steps(operation)

    actions = [(a.verb, a.actor, a.surface, a.count) for a in Action.objects.order_by("id")]
    assert actions == [
        ("bulk requeue", "kim", "shell", 3),
        ("stop bulk", "lee", "admin", 1),
        ("resume bulk", "lee", "admin", 1),
    ]
    first = Action.objects.earliest("id")
    assert first.detail["filter"] == "state:dead"
    assert first.detail["parameters"] == {"spread": 60.0}
    assert first.target == f"bulk operation {operation.pk}"


def test_workers_are_told_of_what_is_ready(storage, actor, monkeypatch):
    told = []
    monkeypatch.setattr(hints, "send", lambda alias, queues, *rest: told.append(set(queues)))
    make(1, queue="mail")
    steps(control.bulk_start("requeue", actor, filter="state:dead"))
    assert told == [{"mail"}]


def test_what_happened_is_told_as_events(storage, actor, monkeypatch):
    seen = []
    monkeypatch.setattr(events, "_subscribers", [lambda event: seen.append(event)])
    make(1)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    control.bulk_stop(operation.pk, actor)
    control.bulk_resume(operation.pk, actor)
    steps(operation)
    assert [event.name for event in seen] == [
        "bulk.started",
        "bulk.stopped",
        "bulk.resumed",
        "jobs.requeued",
        "bulk.finished",
    ]
    assert seen[-1].facts["counts"] == {"requeued": 1}


def test_stopping_what_is_over_is_refused(storage, actor):
    operation = steps(control.bulk_start("requeue", actor, filter="state:dead"))
    assert operation.state == "finished"
    with pytest.raises(WrongState, match="is finished, so it cannot stop"):
        control.bulk_stop(operation.pk, actor)
    with pytest.raises(WrongState, match="cannot resume"):
        control.bulk_resume(operation.pk, actor)
    with pytest.raises(BulkOperationNotFound):
        control.bulk_stop(operation.pk + 1, actor)


def test_progress_is_told_where_it_is_known(storage, actor, small, monkeypatch):
    make(4)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    assert operation.fraction == 0.0
    assert run_step("default").fraction == 0.5
    assert steps(operation).fraction == 1.0
    monkeypatch.setattr(bulk, "COUNT_CAP", 2)
    make(3)
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    assert (operation.total, operation.total_is_capped, operation.fraction) == (2, True, None)


def test_what_is_spread_is_counted_to_the_last_when_it_is_carried_out(
    storage, actor, small, monkeypatch
):
    """Not before: whoever asks for it would wait."""
    monkeypatch.setattr(bulk, "COUNT_CAP", 2)
    jobs = make(3)
    operation = control.bulk_start(
        "requeue", actor, filter="state:dead", run_at=timedelta(hours=1), spread=60
    )
    assert (operation.total, operation.total_is_capped) == (2, True)
    operation = steps(operation)
    assert (operation.total, operation.total_is_capped) == (3, False)
    dues = sorted(Job.objects.filter(id__in=jobs).values_list("run_at", flat=True))
    assert [(due - dues[0]).total_seconds() for due in dues] == [0.0, 20.0, 40.0]


# --- preview --------------------------------------------------------------------------------------


def test_preview_counts_and_changes_nothing(storage, actor, monkeypatch):
    make(3, queue="mail")
    make(2, task="app.other")
    make(1, "ready")
    found = control.bulk_preview("requeue", filter="state:any")
    assert (str(found), found.count) == ("5 jobs", 5)
    assert found.by_state == {"dead": 5}
    assert found.by_queue == {"mail": 3, "default": 2}
    assert found.by_task == {"app.task": 3, "app.other": 2}
    assert versions() == {1: 6}
    assert not Action.objects.exists()
    monkeypatch.setattr(bulk, "COUNT_CAP", 2)
    assert str(control.bulk_preview("requeue", filter="state:dead")) == "more than 2 jobs"


def test_preview_of_ids_counts_those_that_could_be_changed(storage):
    (dead,), (ready,) = make(1), make(1, "ready")
    assert str(control.bulk_preview("requeue", ids=[dead, ready, new_job_id()])) == "1 job"


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "options", "says"),
    [
        ("run_again", {"filter": "state:dead"}, "not done in bulk; requeue, cancel"),
        ("requeue", {}, "with a filter or with ids"),
        ("requeue", {"filter": "state:dead", "ids": [new_job_id()]}, "not both"),
        ("requeue", {"filter": " "}, "state:dead"),
        ("requeue", {"filter": "state:ready"}, "for jobs that are dead, cancelled"),
        ("requeue", {"filter": "state:daed"}, "Did you mean dead"),
        ("requeue", {"ids": []}, "1 to 10,000 ids"),
        ("requeue", {"ids": ["x"]}, "Not the id of a job"),
        ("requeue", {"filter": "state:dead", "priority": 3}, "takes no priority"),
        ("requeue", {"filter": "state:dead", "spread": 0}, "at most 30 days"),
        ("requeue", {"filter": "state:dead", "spread": "1m"}, "at most 30 days"),
        ("requeue", {"filter": "state:dead", "run_at": timedelta(days=-40_000)}, "1970"),
        ("reprioritize", {"filter": "state:ready"}, "needs priority"),
        ("reprioritize", {"filter": "state:ready", "priority": 101}, "-100 to 100"),
        ("move", {"filter": "state:ready", "queue": "post"}, "it has default, mail"),
        ("reschedule", {"filter": "state:ready"}, "needs run_at"),
    ],
)
def test_what_cannot_be_is_refused_before_it_begins(actor, verb, options, says):
    with pytest.raises(InvalidArgument, match=says):
        control.bulk_start(verb, actor, **options)
    assert not BulkOperation.objects.exists()
    assert not Action.objects.exists()


def test_times_in_the_filter_are_those_of_its_beginning(storage, actor):
    operation = control.bulk_start("requeue", actor, filter="state:dead finished<now")
    assert f"finished<{operation.began_at.isoformat()}" in operation.filter


def test_start_stands_and_falls_with_the_callers_transaction(actor):
    with transaction.atomic():
        control.bulk_start("requeue", actor, filter="state:dead")
        transaction.set_rollback(True)
    assert not BulkOperation.objects.exists()


def test_scheduler_is_asked_by_one_cheap_question(storage, actor):
    assert storage.bulk_waits() is False
    operation = control.bulk_start("requeue", actor, filter="state:dead")
    assert storage.bulk_waits() is True
    BulkOperation.objects.update(wait_until=timezone.now() + timedelta(minutes=1))
    assert storage.bulk_waits() is False
    assert storage.bulk_waits(now=timezone.now() + timedelta(minutes=2)) is True
    BulkOperation.objects.update(wait_until=None)
    control.bulk_stop(operation.pk, actor)
    assert storage.bulk_waits() is False
