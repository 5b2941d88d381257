"""Counts say what they are worth."""

import pytest

from jobqueue.engine.counts import Count, limited, numbered


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (Count(17), "17"),
        (Count(10_000, "gte"), "10,000+"),
        (Count(2_000_000, "estimate"), "~2,000,000"),
    ],
)
def test_a_count_reads_as_what_it_is(count, text):
    assert str(count) == text


@pytest.mark.parametrize(
    ("value", "count"), [(3, Count(3)), (10, Count(10)), (11, Count(10, "gte"))]
)
def test_what_was_counted_beyond_a_limit_is_at_least_that(value, count):
    assert limited(value, 10) == count


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 jobs"),
        (1, "1 job"),
        (1_234, "1,234 jobs"),
        (Count(1), "1 job"),
        (Count(1, "gte"), "1+ jobs"),
    ],
)
def test_one_is_not_many(count, text):
    assert numbered(count, "job") == text


def test_a_sum_is_worth_as_much_as_its_worst_part():
    assert Count(1) + Count(2) == Count(3)
    assert Count(1) + Count(2, "gte") == Count(3, "gte")
    assert Count(1, "estimate") + Count(2, "gte") == Count(3, "estimate")
    assert not Count(0)
