"""Faults of the HTTP API's options, and of what it needs where it is served."""

import pytest
from django.core.checks import run_checks
from django.test import override_settings
from django.urls import path

from jobqueue.checks.api import check_api, check_api_deployment
from jobqueue.surfaces import TOKEN, Rate, api_options, parse_api, parse_rate

urlpatterns = [path("nothing/", lambda request: None)]
"""URLs of a project that does not serve the API."""


def ids(messages) -> list[str]:
    return [message.id.removeprefix("jobqueue.") for message in messages]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"MAX_BODY": 1}, "unknown"),
        ({"MAX_BATCH": 0}, "between 1 and 10000"),
        ({"AUTHENTICATION": []}, "no view of the API is open"),
        ({"THROTTLES": {"all": "1/min"}}, "by scope"),
        ({"THROTTLES": {"read": "many"}}, "must be a rate"),
        ({"PAGE_SIZE": 500}, "MAX_PAGE_SIZE"),
        ({"MIN_PRIORITY": 5, "MAX_PRIORITY": 1}, "MAX_PRIORITY"),
        ({"IDEMPOTENCY_KEY": "maybe"}, "must be one of"),
        (7, "must be a dict"),
    ],
)
def test_option_that_cannot_be_used_is_named(settings, options, says):
    settings.JOBQUEUE = {"API": options}
    found = list(check_api())
    assert "E040" in ids(found)
    assert any(says in message.msg for message in found)
    assert api_options().max_batch == 1_000


def test_options_of_the_tests_are_fine():
    assert list(check_api()) == []


def test_missing_apps_are_named(settings):
    left = [app for app in settings.INSTALLED_APPS if not app.startswith("rest_framework")]
    with override_settings(INSTALLED_APPS=left):
        assert ids(check_api()) == ["E041", "E041"]


def test_nothing_is_asked_of_a_project_that_does_not_serve_the_api(settings):
    left = [app for app in settings.INSTALLED_APPS if not app.startswith("rest_framework")]
    settings.ROOT_URLCONF = __name__
    with override_settings(INSTALLED_APPS=left):
        assert list(check_api()) == []


@pytest.mark.parametrize("path", ["no.such.Class", "jobqueue.surfaces.parse_rate", "x"])
def test_authentication_that_cannot_be_used_is_named(settings, path):
    settings.JOBQUEUE = {"API": {"AUTHENTICATION": [path, TOKEN]}}
    assert ids(check_api()) == ["E042"]


def test_alias_and_cache_that_are_not_there_are_named(settings):
    settings.JOBQUEUE = {"API": {"BACKEND": "other", "THROTTLE_CACHE": "shared"}}
    assert ids(check_api()) == ["E043", "E043"]


def test_cache_of_one_process_is_named_before_a_deployment(settings):
    assert ids(check_api_deployment()) == ["W040"]
    assert "jobqueue.W040" not in [message.id for message in run_checks()]
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "x"}
    }
    assert list(check_api_deployment()) == []


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("5/s", Rate(5, 1)),
        ("600/min", Rate(600, 60)),
        ("1/h", Rate(1, 3600)),
        ("9/d", Rate(9, 86400)),
    ],
)
def test_rates_are_read(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "5", "0/s", "5/week", "-1/s", 5, None, "1e3/s"])
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(ValueError, match="rate"):
        parse_rate(text)


def test_throttles_that_are_not_named_keep_their_default():
    options, problems = parse_api({"THROTTLES": {"read": None}})
    assert not problems
    assert options.throttles["read"] is None
    assert options.throttles["enqueue"] == Rate(6000, 60)
