"""Signals: sent after the fact, as often as promised, and harmless whatever a receiver does."""

import logging
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from jobqueue import compat, signals
from jobqueue.events import subscribe
from jobqueue.exceptions import GiveUp, Snooze
from tests.engine import faults
from tests.engine.bench import Bench, Ran, leave
from tests.engine.cutting import session_pid, terminate
from tests.engine.tasks import async_job, atomic_job, plain_job
from tests.engine.test_reruns import conflict
from tests.storage.making import run_sql

STARTED, FINISHED, DIED = compat.task_started, compat.task_finished, signals.job_died


@contextmanager
def heard(signal, receiver):
    signal.connect(receiver, weak=False)
    try:
        yield
    finally:
        signal.disconnect(receiver)


@pytest.fixture
def seen():
    """(signal, job id, status or reason) of every signal of the test, in order."""
    found = []

    def hear(name):
        def receiver(sender, *, task_result=None, job_id=None, reason=None, **kwargs):
            if task_result is None:
                found.append((name, str(job_id), reason))
            else:
                found.append((name, task_result.id, task_result.status.value))

        return receiver

    with (
        heard(STARTED, hear("started")),
        heard(FINISHED, hear("finished")),
        heard(DIED, hear("died")),
    ):
        yield found


TASKS = pytest.mark.parametrize("task", [atomic_job, plain_job], ids=["atomic", "not atomic"])


def fail(context):
    raise ValueError("fails on purpose")


# --- how often ----------------------------------------


@TASKS
def test_a_success_is_started_once_and_finished_once(bench: Bench, seen, task):
    ran = bench.run(leave, task)
    assert seen == [
        ("started", str(ran.id), "RUNNING"),
        ("finished", str(ran.id), "SUCCESSFUL"),
    ]


def test_a_success_without_a_statement_is_finished_with_its_batch(bench: Bench, seen):
    ran = bench.run(lambda context: 1)
    assert seen[-1] == ("finished", str(ran.id), "SUCCESSFUL")


def test_an_async_job_is_started_once_and_finished_once(bench: Bench, seen):
    async def body(context):
        return 1

    ran = bench.run(body, async_job)
    assert seen == [
        ("started", str(ran.id), "RUNNING"),
        ("finished", str(ran.id), "SUCCESSFUL"),
    ]


def test_each_attempt_is_started_and_only_the_end_is_finished(bench: Bench, seen):
    ran = bench.run(fail, atomic_job.using(max_attempts=2))
    bench.again(ran)
    assert seen == [
        ("started", str(ran.id), "RUNNING"),
        ("started", str(ran.id), "RUNNING"),
        ("died", str(ran.id), "out of attempts"),
        ("finished", str(ran.id), "FAILED"),
    ]


def test_a_snooze_finishes_nothing(bench: Bench, seen):
    def body(context):
        raise Snooze(1)

    bench.run(body)
    assert [name for name, _, _ in seen] == ["started"]


def test_a_death_says_why(bench: Bench, seen):
    def body(context):
        raise GiveUp("no such card")

    ran = bench.run(body)
    assert seen[1:] == [("died", str(ran.id), "gave up"), ("finished", str(ran.id), "FAILED")]


@pytest.mark.postgres_only("SQLite has nothing to serialize")
def test_a_rerun_for_the_database_is_no_new_start(bench: Bench, seen):
    def once(storage, proceed):
        conflict(storage.connection, "40001")

    with faults.at("finish_one", faults.once(once)):
        bench.run(leave)
    assert [name for name, _, _ in seen] == ["started", "finished"]


def test_a_run_that_lost_its_lease_finishes_nothing(bench: Bench, seen, events):
    claim = bench.claim_one(leave)
    bench.take_away(claim)
    bench.flush(bench.execute(claim))
    assert [name for name, _, _ in seen] == ["started"]
    assert "job.lease_lost" in [event.name for event in events]


def test_a_hook_of_the_job_that_raises_does_not_hide_its_end(bench: Bench, seen):
    def hook():
        raise ValueError

    def body(context):
        leave(context)
        transaction.on_commit(hook)

    bench.run(body)
    assert [name for name, _, _ in seen] == ["started", "finished"]


def test_an_undecodable_row_died_without_a_start(bench: Bench, seen):
    claim = bench.claim_one(leave)._replace(arguments="[]")
    bench.flush(bench.execute(claim))
    assert [name for name, _, _ in seen] == ["died", "finished"]


# --- when ----------------------------------------


def test_the_end_is_committed_before_it_is_told(bench: Bench):
    states = []

    def receiver(sender, task_result, **kwargs):
        rows = run_sql(bench.storage.connection, "SELECT state FROM jobqueue_job")
        states.append((rows[0][0], task_result.return_value))

    with heard(FINISHED, receiver):
        bench.run(lambda context: leave(context) or 7)
    assert states == [("succeeded", 7)]


def test_a_receiver_of_the_start_writes_outside_of_the_jobs_transaction(bench: Bench):
    def receiver(sender, task_result, **kwargs):
        leave(Starter(task_result.id), "from the receiver")

    with heard(STARTED, receiver):
        ran = bench.run(fail)
    assert ran.effects == ["from the receiver"]


class Starter:
    def __init__(self, job_id):
        self.job_id = job_id


@pytest.mark.postgres_only("on SQLite every job holds the write lock from its start")
def test_a_receiver_does_not_keep_a_job_without_effects_from_its_batch(bench: Bench, seen):
    claim = bench.claim_one(lambda context: 1)
    assert not bench.execute(claim).committed
    assert len(seen) == 1


# --- harmless receivers ----------------------------------------


def raises(sender, **kwargs):
    raise ValueError("in the receiver")


def exits(sender, **kwargs):
    raise SystemExit(1)


def breaks_its_statement(sender, **kwargs):
    run_sql(connection, "SELECT no_such_column FROM app_effect")


def leaves_a_block_open(sender, **kwargs):
    transaction.atomic().__enter__()
    run_sql(connection, "SELECT 1")


def closes_the_connection(sender, **kwargs):
    connection.close()


HARMFUL = [raises, exits, breaks_its_statement, leaves_a_block_open, closes_the_connection]
SIGNALS = {"started": STARTED, "finished": FINISHED, "died": DIED}


@pytest.mark.parametrize("harmful", HARMFUL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("signal", SIGNALS.values(), ids=SIGNALS.keys())
def test_a_harmful_receiver_changes_nothing(bench: Bench, seen, signal, harmful):
    def die(context):
        leave(context)
        raise GiveUp

    with heard(signal, harmful):
        jobs = [
            bench.run(body, task)
            for task in (atomic_job, plain_job)
            for body in (leave, die, leave)
        ]
    assert [job.state for job in jobs] == ["succeeded", "dead", "succeeded"] * 2
    assert [job.effects for job in jobs] == [["done"], [], ["done"]] + [["done"]] * 3
    ends = [job_id for name, job_id, _ in seen if name == "finished"]
    assert ends == [str(job.id) for job in jobs]


@pytest.mark.postgres_only("SQLite has no sessions that somebody could end")
@pytest.mark.parametrize("signal", SIGNALS.values(), ids=SIGNALS.keys())
def test_a_receiver_whose_session_is_ended_does_not_silence_later_signals(
    bench: Bench, seen, admin, signal
):
    def killed(sender, **kwargs):
        terminate(admin, session_pid())

    claims = [bench.claim_one(fail, atomic_job.using(max_attempts=1)), bench.claim_one(leave)]
    with heard(signal, killed):
        for claim in claims:
            bench.flush(bench.execute(claim))
    ends = [job_id for name, job_id, _ in seen if name == "finished"]
    connection.close()
    assert ends == [str(claim.id) for claim in claims]
    assert Ran(claims[1].id).effects == ["done"]


@pytest.mark.postgres_only("SQLite has no sessions that somebody could end")
def test_a_session_that_died_between_two_batches_silences_no_signal(bench: Bench, seen, admin):
    """The thread that writes batches runs no job that would notice."""
    claims = [bench.claim_one(lambda context: 1), bench.claim_one(lambda context: 2)]
    ended = [bench.execute(claim) for claim in claims]
    for each in ended:
        terminate(admin, session_pid())
        bench.flush(each)
    ends = [job_id for name, job_id, _ in seen if name == "finished"]
    assert ends == [str(claim.id) for claim in claims]


def test_the_error_of_a_receiver_is_logged(bench: Bench, caplog):
    with caplog.at_level(logging.ERROR), heard(FINISHED, raises):
        bench.run(leave)
    assert "in the receiver" in caplog.text


def test_a_subscriber_of_events_that_raises_changes_nothing(bench: Bench):
    def subscriber(event):
        raise ValueError("in the subscriber")

    stop = subscribe(subscriber)
    try:
        ran = bench.run(fail)
    finally:
        stop()
    assert Ran(ran.id).state == "retrying"
