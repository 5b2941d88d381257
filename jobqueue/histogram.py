"""Histograms of times: how many fell between fixed bounds, from which percentiles are read.

The bounds are the same for ever and everywhere, so histograms of any minutes, queues and workers
add up, and a percentile of the sum is as good as one of each: at most a quarter (10^0.1) off,
whatever the distribution. Averages of percentiles, which is what separate percentiles would leave,
mean nothing.

While they are counted, a bucket is a character: a text is what a database can gather fastest, and
Python count fastest. Stored as JSON text, an object of bucket number to count: most of them have a
handful of buckets.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter

PER_DECADE = 10
BOUNDS: tuple[float, ...] = tuple(
    round(10 ** (n / PER_DECADE - 3), 9) for n in range(9 * PER_DECADE + 1)
)
"""Seconds, from a millisecond to eleven days, ten a decade. Bucket n holds what is at least
BOUNDS[n - 1] and below BOUNDS[n]; the first and the last bucket are open to their outer side."""

Histogram = Counter[int]
"""Bucket number to count."""

PERCENTILES = (0.50, 0.95, 0.99)


def bucket_of(seconds: float) -> int:
    """Return the number of the bucket that `seconds` falls into."""
    return bisect_right(BOUNDS, seconds)


FIRST_CHARACTER = 33
"""The character of bucket 0, an exclamation mark; those of the others follow it in ASCII."""


def character_of(seconds: float) -> str:
    """Return the bucket that `seconds` falls into as a character."""
    return chr(FIRST_CHARACTER + bucket_of(seconds))


def counted(characters: str) -> Histogram:
    """Return the histogram of times given as the characters of their buckets."""
    return Histogram({ord(c) - FIRST_CHARACTER: n for c, n in Counter(characters).items()})


def percentile(histogram: Histogram, share: float) -> float | None:
    """Return the time in seconds that `share` (0 … 1) of the counted ones did not exceed.

    None for an empty histogram. Within its bucket the rank is placed on the logarithmic scale;
    below the first bound on a linear one; beyond the last bound it is that bound.
    """
    rank = share * histogram.total()
    if not rank:
        return None
    seen = 0
    for bucket in sorted(histogram):
        count = histogram[bucket]
        if count and seen + count >= rank:
            return _within(bucket, (rank - seen) / count)
        seen += count
    return BOUNDS[-1]


def dump(histogram: Histogram) -> str:
    """Return the JSON text to store."""
    return json.dumps({str(n): histogram[n] for n in sorted(histogram)}, separators=(",", ":"))


def load(document: object) -> Histogram:
    """Return a stored histogram; an empty one for what is none."""
    if not isinstance(document, dict):
        return Histogram()
    return Histogram({int(bucket): count for bucket, count in document.items()})


def _within(bucket: int, part: float) -> float:
    if bucket == 0:
        return BOUNDS[0] * part
    if bucket >= len(BOUNDS):
        return BOUNDS[-1]
    low, high = BOUNDS[bucket - 1], BOUNDS[bucket]
    return float(low * (high / low) ** part)
