"""Throttles: who is counted, what they are told, and that a broken cache stops nobody."""

import pytest
from django.core.cache.backends.locmem import LocMemCache

from jobqueue.api.throttling import spend
from tests.api.conftest import Api, problem


@pytest.fixture
def throttled(settings):
    def to(**rates):
        settings.JOBQUEUE = {"API": {"THROTTLES": rates}}

    return to


def test_too_many_requests_are_refused_and_told_when_to_come_back(make_caller, throttled):
    throttled(read="2/h")
    kim, lee = make_caller("kim"), make_caller("lee")
    answers = [kim.get("/tasks/") for _ in range(3)]
    assert [a.status_code for a in answers] == [200, 200, 429]
    assert answers[0]["RateLimit-Policy"] == '"read";q=2;w=3600'
    assert answers[0]["RateLimit"].startswith('"read";r=1;t=')
    problem(answers[2], 429, "too-many-requests")
    assert 0 < int(answers[2]["Retry-After"]) <= 2 * 3600
    assert lee.get("/tasks/").status_code == 200


def test_refused_credentials_count_by_address(anybody: Api, throttled, db):
    throttled(anonymous="2/h")
    answers = [anybody.get("/tasks/", Authorization=f"Token {n}") for n in range(3)]
    assert [a.status_code for a in answers] == [401, 401, 429]
    problem(anybody.get("/health/live/"), 429, "too-many-requests")


def test_good_credentials_are_not_refused_for_bad_ones_of_a_neighbor(
    anybody: Api, make_caller, throttled
):
    throttled(anonymous="1/h")
    assert [anybody.get("/tasks/").status_code for _ in range(2)] == [401, 429]
    assert make_caller().get("/tasks/").status_code == 200


def test_nothing_is_counted_without_a_limit(make_caller, throttled):
    throttled(read=None)
    response = make_caller().get("/tasks/")
    assert response.status_code == 200
    assert "RateLimit" not in response


def test_window_slides(throttled):
    throttled(read="10/min")

    def sent(at: float) -> bool:
        quota = spend("read", "kim", now=at)
        assert quota is not None
        return not quota.is_exceeded

    start = 6_000.0
    assert [sent(start + 59) for _ in range(11)] == [True] * 10 + [False]
    # A second later the last ten still count; half a minute later half of them.
    assert not sent(start + 61)
    assert [sent(start + 90) for _ in range(6)] == [True] * 5 + [False]


@pytest.mark.parametrize("at", [0, 10.5, 59, 61, 90, 119.9])
def test_waiting_as_told_is_enough(throttled, at):
    throttled(read="7/min")
    start = 6_000.0
    for _ in range(5):
        spend("read", "kim", now=start)
    now = start + at
    while (quota := spend("read", "kim", now=now)) and not quota.is_exceeded:
        pass
    assert quota is not None
    after = spend("read", "kim", now=now + quota.seconds)
    assert after is not None
    assert not after.is_exceeded


class BrokenCache(LocMemCache):
    def get_many(self, keys, version=None):
        raise ConnectionError("cache is down")


def test_cache_that_fails_stops_nobody(make_caller, settings, caplog):
    settings.CACHES = {"default": {"BACKEND": f"{__name__}.{BrokenCache.__name__}"}}
    assert make_caller().get("/tasks/").status_code == 200
    assert "api.throttle_failed" in caplog.text
