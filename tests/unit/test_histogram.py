"""Histograms: percentiles are near the truth, sums are as good as the whole."""

import json
import random
from statistics import quantiles

import pytest

from jobqueue.histogram import BOUNDS, Histogram, bucket_of, dump, load, percentile


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(-1.0, 0), (0.0, 0), (0.000999, 0), (0.001, 1), (1.0, 31), (1e6, 91), (1e9, 91)],
)
def test_a_time_falls_between_its_bounds(seconds, bucket):
    assert bucket_of(seconds) == bucket


def test_bounds_are_ten_a_decade_and_never_change():
    assert len(BOUNDS) == 91
    assert (BOUNDS[0], BOUNDS[30], BOUNDS[60], BOUNDS[-1]) == (0.001, 1.0, 1_000.0, 1_000_000.0)
    assert list(BOUNDS) == sorted(set(BOUNDS))


@pytest.mark.parametrize("seed", range(20))
def test_a_percentile_is_within_a_quarter_of_the_truth(seed):
    chance = random.Random(seed)
    times = [chance.lognormvariate(seed / 3 - 3, 1 + seed / 10) for _ in range(2_000)]
    times = [t for t in times if t > BOUNDS[0]]
    histogram = Histogram(map(bucket_of, times))
    exact = quantiles(times, n=100, method="inclusive")
    for share in (0.5, 0.95, 0.99):
        assert percentile(histogram, share) == pytest.approx(exact[int(share * 100) - 1], rel=0.26)


def test_a_percentile_of_the_sum_is_that_of_the_whole():
    chance = random.Random(7)
    times = [chance.expovariate(2.0) for _ in range(5_000)]
    parts = [Histogram(map(bucket_of, times[n::7])) for n in range(7)]
    assert percentile(sum(parts, Histogram()), 0.95) == percentile(
        Histogram(map(bucket_of, times)), 0.95
    )


@pytest.mark.parametrize(
    ("histogram", "share", "seconds"),
    [
        ({}, 0.5, None),
        ({0: 4}, 0.5, 0.0005),
        ({31: 1}, 1.0, BOUNDS[31]),
        ({91: 3}, 0.5, BOUNDS[-1]),
    ],
)
def test_percentiles_at_the_edges(histogram, share, seconds):
    assert percentile(Histogram(histogram), share) == seconds


def test_percentiles_grow_with_their_share():
    histogram = Histogram({3: 2, 10: 50, 40: 7, 91: 1})
    found = [percentile(histogram, n / 100) for n in range(1, 101)]
    assert found == sorted(found)


def test_a_histogram_survives_storage_and_what_is_none_is_empty():
    histogram = Histogram({0: 1, 31: 5, 91: 2})
    assert load(json.loads(dump(histogram))) == histogram
    assert load("not a histogram") == Histogram()
