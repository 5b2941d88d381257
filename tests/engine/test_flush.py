"""Batches: a bad row stands alone, an answer lost is no lease lost, nothing is forgotten."""

from contextlib import contextmanager

import pytest
from django.db import DataError, OperationalError, connection, transaction

from jobqueue.engine import completion
from jobqueue.engine.outcomes import Ended, decide_failure
from jobqueue.engine.recovery import reap_overdue
from jobqueue.exceptions import TimeLimitExceeded
from jobqueue.signals import job_died
from jobqueue.storage import storage_for
from tests.engine import faults
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import plain_job
from tests.storage.making import everything, run_sql


def names(events):
    return [event.name for event in events]


def claims(bench: Bench, count: int):
    for _ in range(count):
        bench.enqueue(leave, plain_job)
    found = bench.claim(plain_job, limit=count)
    assert len(found) == count
    return found


def succeeded(claim, result="1") -> Ended:
    return Ended(claim, 0.0, 0.0, result=result)


def failed(bench: Bench, claim, message="fails on purpose") -> Ended:
    failure = decide_failure(claim, ValueError(message), None, bench.environment.options)
    return Ended(claim, 0.0, 0.0, failure=failure)


def states(found) -> list[str]:
    return [Ran(claim.id).state for claim in found]


# --- batches ----------------------------------------


def test_successes_and_failures_go_in_one_flush(bench: Bench):
    one, two, three = claims(bench, 3)
    bench.flush(succeeded(one), failed(bench, two), succeeded(three))
    assert states([one, two, three]) == ["succeeded", "retrying", "succeeded"]


def test_a_lost_lease_among_them_hurts_nobody_else(bench: Bench, events):
    one, two, three = claims(bench, 3)
    taken = bench.take_away(two)
    bench.flush(*[succeeded(claim) for claim in (one, two, three)])
    assert states([one, two, three]) == ["succeeded", "running", "succeeded"]
    assert Ran(two.id).job.worker == taken.worker
    assert names(events).count("job.lease_lost") == 1


# --- refused rows ----------------------------------------

NUL = '"a\x00b"'


@pytest.mark.parametrize("position", range(5))
@pytest.mark.postgres_only("SQLite takes any text")
def test_one_result_that_the_database_refuses_does_not_stop_the_others(bench: Bench, position):
    found = claims(bench, 5)
    ended = [succeeded(claim) for claim in found]
    ended[position] = succeeded(found[position], NUL)
    bench.flush(*ended)
    wanted = ["succeeded"] * 5
    wanted[position] = "dead"
    assert states(found) == wanted
    refused = Ran(found[position].id)
    assert (refused.attempt.outcome, refused.job.result) == ("failed", None)
    assert refused.attempt.error_class.startswith("django.db.utils.")


@pytest.mark.postgres_only("SQLite takes any text")
def test_a_result_that_is_not_json_is_refused_alone(bench: Bench):
    found = claims(bench, 3)
    bench.flush(succeeded(found[0], "{"), succeeded(found[1]), succeeded(found[2], NUL))
    assert states(found) == ["dead", "succeeded", "dead"]


def refusing(bad):
    """A hook that refuses every batch with one of `bad` in it, as a constraint would."""

    def hook(storage, proceed):
        rows = proceed.args[-1]
        if any(row.id in bad for row in rows):
            raise DataError("refused on purpose")
        return proceed()

    return hook


@pytest.mark.parametrize("position", [0, 3, 6])
def test_a_refused_finish_is_recorded_as_a_failure_and_told(bench: Bench, events, position):
    found = claims(bench, 7)
    bad = found[position]
    died = []
    job_died.connect(receiver := lambda job_id, **kwargs: died.append(job_id), weak=False)
    try:
        with faults.at("finish_many", refusing({bad.id})):
            bench.flush(*[succeeded(claim) for claim in found])
    finally:
        job_died.disconnect(receiver)
    assert Ran(bad.id).state == "dead"
    assert states(claim for claim in found if claim is not bad) == ["succeeded"] * 6
    assert died == [bad.id]
    assert "job.dead" in names(events)


def test_an_end_that_cannot_be_stored_does_not_stop_the_others(bench: Bench):
    found = claims(bench, 5)
    ended = [failed(bench, claim) for claim in found]
    with faults.at("end_many", refusing({found[2].id})):
        assert bench.flush(*ended) == [ended[2]]
    assert states(found) == ["retrying", "retrying", "running", "retrying", "retrying"]


def test_a_row_refused_in_every_way_stays_held_until_the_reaper_takes_it(bench: Bench, events):
    """Given back by the beat it would run again and again: that its end was refused is no news."""
    found = claims(bench, 3)
    bad = {found[1].id}
    ended = [succeeded(claim) for claim in found]
    with faults.at("finish_many", refusing(bad)), faults.at("end_many", refusing(bad)):
        assert bench.flush(*ended, failed(bench, claims(bench, 1)[0])) == [ended[1]]
        assert bench.flush(ended[1]) == [ended[1]]
        assert states(found) == ["succeeded", "running", "succeeded"]
    bench.reap(found[1])
    assert bench.flush(ended[1]) == []
    assert states(found) == ["succeeded", "ready", "succeeded"]
    assert names(events).count("job.lease_lost") == 1


def test_an_error_that_the_encoding_of_the_database_does_not_take_is_kept_in_ascii(bench: Bench):
    def of_few_characters(storage, proceed):
        if any(row.error and not row.error.message.isascii() for row in proceed.args[-1]):
            raise DataError("has no equivalent in encoding LATIN1")
        return proceed()

    found = claims(bench, 2)
    ended = [failed(bench, found[0]), failed(bench, found[1], "鍵")]
    with faults.at("end_many", of_few_characters):
        assert bench.flush(*ended) == []
    assert states(found) == ["retrying", "retrying"]
    assert Ran(found[1].id).attempt.error_message == "\\u9375"


# --- what may pass ----------------------------------------


def in_time_only(rows, code):
    """A hook that answers larger batches with an error of this SQLSTATE."""

    def hook(storage, proceed):
        if len(proceed.args[-1]) > rows:
            cause = Exception()
            cause.sqlstate = code  # type: ignore[attr-defined]
            raise OperationalError("on purpose") from cause
        return proceed()

    return hook


@pytest.mark.parametrize("code", ["57014", "54000", "53200"])
@pytest.mark.parametrize("method", ["finish_many", "end_many"])
def test_a_batch_that_is_too_much_for_the_server_is_split(bench: Bench, method, code):
    found = claims(bench, 6)
    ended = [succeeded(claim) for claim in found[:3]]
    ended += [failed(bench, claim) for claim in found[3:]]
    with faults.at(method, in_time_only(1, code)):
        assert bench.flush(*ended) == []
    assert states(found) == ["succeeded"] * 3 + ["retrying"] * 3


@pytest.mark.parametrize("code", ["57014", "55P03", "53100"])
def test_a_time_out_says_nothing_against_a_row(bench: Bench, events, code):
    """Recorded as refused it would be a dead letter, of a job that succeeded."""
    (claim,) = claims(bench, 1)
    ended = succeeded(claim)
    with faults.at("finish_many", in_time_only(0, code)):
        assert bench.flush(ended) == [ended]
    assert states([claim]) == ["running"]
    assert bench.flush(ended) == []
    assert states([claim]) == ["succeeded"]
    assert "job.lease_lost" not in names(events)


def test_what_is_too_large_alone_is_refused(bench: Bench):
    (claim,) = claims(bench, 1)
    with faults.at("finish_many", in_time_only(0, "54000")):
        assert bench.flush(succeeded(claim)) == []
    assert states([claim]) == ["dead"]


@pytest.mark.parametrize("kind", ["results", "tracebacks"])
def test_a_flush_is_cut_into_statements_of_bounded_text(bench: Bench, monkeypatch, kind):
    sizes = []

    def count(storage, proceed):
        sizes.append(len(proceed.args[-1]))
        return proceed()

    monkeypatch.setattr(completion, "CHUNK_CHARACTERS", 1_000)
    found = claims(bench, 5)
    if kind == "results":
        ended = [succeeded(claim, '"' + "x" * 400 + '"') for claim in found]
    else:
        ended = [failed(bench, claim, "x" * 400) for claim in found]
    with faults.at("finish_many", count), faults.at("end_many", count):
        assert bench.flush(*ended) == []
    assert sizes == [2, 2, 1]


# --- locked rows ----------------------------------------


@pytest.fixture
def impatient(bench: Bench):
    """The fetch loop's session fails where it would wait for a lock."""
    run_sql(bench.storage.connection, "SET lock_timeout = '3s'")


@contextmanager
def locked(claim, storage=None):
    """Hold the row of a job, as a guarded block or an outsider does."""
    with transaction.atomic():
        if storage is not None:
            storage_for(connection).hold(claim, None)
        else:
            lock = "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE"
            run_sql(connection, lock, [claim.id])
        yield


@pytest.mark.postgres_only("SQLite has no row locks")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("end", [succeeded, failed], ids=["success", "failure"])
def test_a_row_that_a_successor_holds_is_reported_at_once(bench: Bench, events, end):
    """Else its guarded block, however long, keeps the fetch loop from turning, and so the beat."""
    stale, good = claims(bench, 2)
    ended = [succeeded(c) if end is succeeded else failed(bench, c) for c in (stale, good)]
    taken = bench.take_away(stale)
    with locked(taken, bench.storage):
        assert bench.flush(*ended) == []
        assert names(events).count("job.lease_lost") == 1
    assert states([stale]) == ["running"]
    assert states([good]) == ["succeeded" if end is succeeded else "retrying"]


@pytest.mark.postgres_only("SQLite has no row locks")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("end", [succeeded, failed], ids=["success", "failure"])
def test_a_row_of_ours_that_somebody_locks_holds_nobody_else_up(bench: Bench, events, end):
    found = claims(bench, 3)
    ended = [succeeded(c) if end is succeeded else failed(bench, c) for c in found]
    done = "succeeded" if end is succeeded else "retrying"
    with locked(found[1]):
        assert bench.flush(*ended) == [ended[1]]
        assert states(found) == [done, "running", done]
    assert bench.flush(ended[1]) == []
    assert states(found) == [done] * 3
    assert "job.lease_lost" not in names(events)


# --- a database that is away ----------------------------------------


def away(storage, proceed):
    raise OperationalError("the connection is closed")


def answer_lost(storage, proceed):
    proceed()
    raise OperationalError("the connection is closed")


@pytest.mark.parametrize("method", ["finish_many", "end_many"])
def test_a_database_that_is_away_is_told_to_the_caller_and_nothing_is_lost(bench: Bench, method):
    one, two = claims(bench, 2)
    ended = [succeeded(one), failed(bench, two)]
    with faults.at(method, away), pytest.raises(OperationalError):
        bench.flush(*ended)
    bench.flush(*ended)
    assert states([one, two]) == ["succeeded", "retrying"]
    assert [len(Ran(claim.id).attempts) for claim in (one, two)] == [1, 1]


@pytest.mark.parametrize("method", ["finish_many", "end_many"])
def test_a_batch_sent_again_after_a_lost_answer_is_no_lease_lost(bench: Bench, events, method):
    one, two = claims(bench, 2)
    ended = [succeeded(one), failed(bench, two)]
    with faults.at(method, answer_lost), pytest.raises(OperationalError):
        bench.flush(*ended)
    before = everything()
    bench.flush(*ended)
    assert states([one, two]) == ["succeeded", "retrying"]
    assert "job.lease_lost" not in names(events)
    if method == "end_many":
        assert everything() == before


def test_a_batch_sent_again_after_the_reaper_was_faster_is_lease_lost(bench: Bench, events):
    (claim,) = claims(bench, 1)
    with faults.at("finish_many", away), pytest.raises(OperationalError):
        bench.flush(succeeded(claim))
    bench.reap(claim)
    bench.flush(succeeded(claim))
    assert states([claim]) == ["ready"]
    assert "job.lease_lost" in names(events)


def test_a_time_out_that_a_reaper_has_written_first_is_told_once(bench: Bench, events):
    """The worker was frozen, or its database away; its own end of the same claim looks alike."""
    (claim,) = claims(bench, 1)
    held = bench.storage.running_of([claim.worker])
    reap_overdue(bench.storage, held, bench.environment.options)
    late = TimeLimitExceeded("late")
    failure = decide_failure(claim, late, None, bench.environment.options)
    bench.flush(Ended(claim, 0.0, 0.0, failure=failure))
    assert [attempt.outcome for attempt in Ran(claim.id).attempts] == ["timed_out"]
    told = [name for name in names(events) if name.startswith("job.")]
    assert told == ["job.reaped", "job.lease_lost"]


def test_half_a_batch_sent_before_the_database_went_away_is_not_sent_twice(bench: Bench, events):
    found = claims(bench, 4)
    calls = []

    def refuse_whole_then_fail_in_the_second_half(storage, proceed):
        calls.append(len(proceed.args[-1]))
        if len(calls) == 1:
            raise DataError("split, please")
        if len(calls) == 3:
            raise OperationalError("gone in the middle")
        return proceed()

    ended = [succeeded(claim) for claim in found]
    with (
        faults.at("finish_many", refuse_whole_then_fail_in_the_second_half),
        pytest.raises(OperationalError),
    ):
        bench.flush(*ended)
    assert states(found) == ["succeeded", "succeeded", "running", "running"]
    bench.flush(*ended)
    assert states(found) == ["succeeded"] * 4
    assert "job.lease_lost" not in names(events)
