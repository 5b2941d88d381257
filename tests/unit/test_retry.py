"""Back-off: bounded whatever the policy says, for every cause of a retry."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.retry import MAX_DELAY_SECONDS, Backoff, delay_seconds


def test_the_default_is_five_seconds_times_four_to_the_n_within_its_jitter():
    for number, expected in [(1, 5), (2, 20), (3, 80), (4, 320)]:
        for _ in range(200):
            assert 0.85 * expected <= Backoff()(number) <= 1.15 * expected


def test_jitter_spreads_the_delays():
    assert len({Backoff()(1) for _ in range(50)}) > 40


def test_no_jitter_gives_the_same_delay_each_time():
    assert {Backoff(jitter=0)(3) for _ in range(10)} == {80.0}


@given(
    base=st.floats(0, 1e6),
    factor=st.floats(1, 1e6),
    minimum=st.floats(0, 3600),
    extra=st.floats(0, 1e6),
    jitter=st.floats(0, 1),
    number=st.integers(-5, 10**6),
)
def test_a_delay_never_leaves_minimum_and_cap(base, factor, minimum, extra, jitter, number):
    policy = Backoff(base=base, factor=factor, minimum=minimum, cap=minimum + extra, jitter=jitter)
    assert minimum <= policy(number) <= minimum + extra


def test_a_factor_of_one_is_a_constant_delay():
    assert {Backoff(base=60, factor=1, jitter=0)(n) for n in range(1, 50)} == {60.0}


@pytest.mark.parametrize(
    "keywords",
    [
        {"base": -1},
        {"factor": 0.5},
        {"jitter": 1.5},
        {"jitter": -0.1},
        {"minimum": 10, "cap": 5},
        {"minimum": -1},
        {"cap": MAX_DELAY_SECONDS + 1},
        {"cap": math.nan},
    ],
)
def test_a_policy_out_of_range_is_refused(keywords):
    with pytest.raises(ValueError):
        Backoff(**keywords)


@pytest.mark.parametrize("nonsense", [-5, math.nan, None, "soon", math.inf, 10**12])
def test_a_policy_of_the_users_that_returns_nonsense_still_gives_a_bounded_delay(nonsense):
    delay = delay_seconds(lambda number, exception: nonsense, 1)
    assert 0 <= delay <= MAX_DELAY_SECONDS


def test_a_policy_of_the_users_that_raises_is_answered_for_by_the_default():
    def broken(number, exception):
        raise RuntimeError("my own bug")

    assert 0 < delay_seconds(broken, 1) <= 5 * 1.15


def test_a_policy_is_told_the_number_and_the_exception():
    told = []

    def policy(number, exception):
        told.append((number, exception))
        return 0

    error = ValueError("why")
    assert delay_seconds(policy, 3, error) == 0
    assert delay_seconds(policy, 4) == 0
    assert told == [(3, error), (4, None)]


def test_a_policy_that_fails_is_told_of(caplog):
    def broken_policy(number, exception):
        raise ValueError

    with caplog.at_level("WARNING", logger="jobqueue"):
        assert delay_seconds(broken_policy, 1) > 0
    assert "broken_policy" in caplog.text
