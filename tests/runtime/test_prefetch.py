"""How much a process claims: its free slots, and more only of what it has seen to be short."""

import time

import pytest

from jobqueue.engine.outcomes import Ended
from jobqueue.ids import new_identity, new_job_id
from jobqueue.runtime.prefetch import Prefetch
from jobqueue.storage.records import Claim


def claim(task="app.task", suspicions=0) -> Claim:
    return Claim(
        id=new_job_id(),
        fence=1,
        worker=new_identity(),
        task=task,
        queue="default",
        backend="default",
        arguments="",
        failures=0,
        max_attempts=5,
        suspicions=suspicions,
        timeout=60.0,
        alone=False,
        claimed=time.time(),
        rank=0,
    )


def experienced(seconds: float, slots=4, batch=200, times=200) -> Prefetch:
    prefetch = Prefetch(slots, batch)
    for _ in range(times):
        prefetch.learn(Ended(claim(), 0.0, seconds, committed=True))
    return prefetch


def test_a_process_without_experience_claims_its_free_slots():
    prefetch = Prefetch(4, 200)
    assert prefetch.room(running=0, waiting=0) == 4
    assert prefetch.room(running=3, waiting=0) == 1
    assert prefetch.room(running=4, waiting=0) == 0
    assert prefetch.room(running=1, waiting=3) == 0


@pytest.mark.parametrize("seconds", [1.0, 30.0, 1_800.0])
def test_long_jobs_are_not_claimed_ahead(seconds):
    prefetch = experienced(seconds)
    assert prefetch.room(running=4, waiting=0) == 0
    assert prefetch.room(running=2, waiting=0) == 2


def test_short_jobs_are_claimed_ahead_as_many_as_start_within_a_moment():
    assert experienced(0.01).room(running=4, waiting=0) == 40
    assert experienced(0.05).room(running=4, waiting=0) == 8


def test_no_claim_is_larger_than_a_batch():
    assert experienced(0.0, batch=200).room(running=0, waiting=0) == 200
    assert experienced(0.00001, slots=64, batch=10).room(running=0, waiting=0) == 10


def test_nothing_is_claimed_while_enough_are_waiting():
    prefetch = experienced(0.01)
    assert prefetch.room(running=4, waiting=21) == 0
    assert prefetch.room(running=4, waiting=20) == 20


def test_one_long_job_among_short_ones_shrinks_what_is_claimed_ahead():
    prefetch = experienced(0.001)
    before = prefetch.room(running=4, waiting=0)
    prefetch.learn(Ended(claim(), 0.0, 60.0, committed=True))
    assert prefetch.room(running=4, waiting=0) < before


def test_a_task_not_yet_seen_does_not_wait_behind_others():
    prefetch = experienced(0.001)
    assert prefetch.may_wait(claim("app.task"), waiting=4)
    assert not prefetch.may_wait(claim("app.unseen"), waiting=4)
    assert prefetch.may_wait(claim("app.unseen"), waiting=3)


def test_a_suspect_does_not_wait_behind_others():
    prefetch = experienced(0.001)
    assert not prefetch.may_wait(claim(suspicions=1), waiting=4)
    assert prefetch.may_wait(claim(suspicions=1), waiting=0)


def test_nothing_is_claimed_ahead_after_claims_found_no_slot_until_one_is_free():
    prefetch = experienced(0.0001)
    assert prefetch.room(running=4, waiting=0) > 0
    prefetch.gave_back()
    assert prefetch.room(running=4, waiting=0) == 0
    assert prefetch.room(running=3, waiting=0) == 1
    prefetch.learn(Ended(claim(), 0.0, 0.0001, committed=True))
    assert prefetch.room(running=4, waiting=0) > 0


def test_jobs_with_a_limit_get_free_slots_only():
    prefetch = Prefetch(4, 200)
    assert prefetch.limited_room(running=1, waiting=1, limited_waiting=0) == 2
    assert prefetch.limited_room(running=4, waiting=0, limited_waiting=0) == 0
    assert experienced(30.0).limited_room(running=4, waiting=0, limited_waiting=0) == 0


def test_one_job_with_a_limit_may_stand_by_where_slots_turn_over_within_a_moment():
    """Else a stream of short jobs, claimed ahead, would never leave it a slot."""
    prefetch = experienced(0.001)
    assert prefetch.limited_room(running=4, waiting=100, limited_waiting=0) == 1
    assert prefetch.limited_room(running=4, waiting=101, limited_waiting=1) == 0
