"""Faults of the live page's options, and of what it needs where it is served."""

import pytest
from django.test import override_settings
from django.urls import path

from jobqueue.checks.live import check_live, check_live_deployment
from jobqueue.surfaces import live_options

urlpatterns = [path("nothing/", lambda request: None)]
"""URLs of a project that does not serve the page."""


def ids(messages) -> list[str]:
    return [message.id.removeprefix("jobqueue.") for message in messages]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"RECHECK": 1}, "unknown"),
        ({"RECHECK_SECONDS": 61}, "between 1 and 60"),
        ({"MAX_CONNECTIONS": "many"}, "whole number"),
        ({"BACKEND": "nowhere"}, "no alias in TASKS"),
        (7, "must be a dict"),
    ],
)
def test_option_that_cannot_be_used_is_named(settings, options, says):
    settings.JOBQUEUE = {"LIVE": options}
    (found,) = check_live()
    assert found.id == "jobqueue.E050"
    assert says in found.msg
    assert live_options().recheck_seconds == 30


def test_options_of_the_tests_are_fine():
    assert list(check_live()) == []


def test_missing_apps_are_named_only_where_the_page_is_served(settings):
    left = [a for a in settings.INSTALLED_APPS if a not in ("django.contrib.sessions", "tests.app")]
    with override_settings(INSTALLED_APPS=left):
        assert ids(check_live()) == ["E051"]
        with override_settings(ROOT_URLCONF=__name__):
            assert ids([*check_live(), *check_live_deployment()]) == []


def test_sessions_in_cookies_are_a_warning_where_it_is_deployed(settings):
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    assert "W050" in ids(check_live_deployment())
