"""Batches: a bad row stands alone, an answer lost is no lease lost, nothing is forgotten."""

import pytest
from django.db import DataError, OperationalError

from jobqueue.engine.outcomes import Ended, decide_failure
from jobqueue.events import subscribe
from jobqueue.signals import job_died
from tests.engine import faults
from tests.engine.bench import Bench, Ran, leave
from tests.engine.tasks import plain_job
from tests.storage.making import everything


@pytest.fixture
def events():
    found = []
    stop = subscribe(found.append)
    yield found
    stop()


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
    with faults.at("end_many", refusing({found[2].id})):
        bench.flush(*[failed(bench, claim) for claim in found])
    assert states(found) == ["retrying", "retrying", "running", "retrying", "retrying"]


def test_a_row_refused_in_every_way_stays_for_the_reaper_and_stops_nobody(bench: Bench):
    found = claims(bench, 3)
    bad = {found[1].id}
    with faults.at("finish_many", refusing(bad)), faults.at("end_many", refusing(bad)):
        bench.flush(*[succeeded(claim) for claim in found], failed(bench, claims(bench, 1)[0]))
    assert states(found) == ["succeeded", "running", "succeeded"]


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
