"""Faults that belong to no single alias: order of apps, the site's setting, shared databases."""

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from jobqueue.checks import check_project
from jobqueue.checks.project import check_apps, check_shared_databases, check_site_setting


def ids(messages) -> list[str]:
    return [message.id.removeprefix("jobqueue.") for message in messages]


def aliases(**options):
    return {
        alias: {"BACKEND": "jobqueue.backend.JobQueueBackend", "OPTIONS": own}
        for alias, own in options.items()
    }


def test_settings_of_the_tests_are_fine():
    assert check_project() == []
    assert not [m for m in run_checks() if m.id.startswith("jobqueue.")]


@pytest.mark.parametrize("order", [["channels", "jobqueue"], ["jobqueue", "channels"]])
def test_channels_must_not_hide_our_runworker(settings, order):
    pytest.importorskip("channels", reason="channels is not installed")
    apps = [*order, *(app for app in settings.INSTALLED_APPS if app not in order)]
    with override_settings(INSTALLED_APPS=apps):
        found = ids(check_apps())
    assert found == (["E010"] if order[0] == "channels" else [])


HOOK = "jobqueue.redaction.hide_secrets"


@pytest.mark.parametrize("site", [{}, {"API": {}, "LIVE": {}, "REDACT": HOOK}, {"REDACT": None}])
def test_known_keys_of_the_site_setting_are_fine(settings, site):
    settings.JOBQUEUE = site
    assert ids(check_site_setting()) == []


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("shop.no_such.redact", "ModuleNotFoundError"),
        ("jobqueue.redaction.HIDDEN", "not callable"),
        ("redact", "ImportError"),
        (7, "Error"),
    ],
)
def test_hook_that_cannot_be_used_is_refused(settings, path, says):
    settings.JOBQUEUE = {"REDACT": path}
    (message,) = check_site_setting()
    assert message.id == "jobqueue.E011"
    assert says in message.msg


@pytest.mark.parametrize("site", [None, "x", {"API": {}, "BATCH": 1}, {"api": {}}])
def test_unknown_key_of_the_site_setting_is_refused(settings, site):
    settings.JOBQUEUE = site
    (message,) = check_site_setting()
    assert message.id == "jobqueue.E011"
    assert "API, LIVE, REDACT" in message.hint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"RETENTION": {"dead": 86_400}}, {}),
        ({"LEASE_SECONDS": 60}, {"LEASE_SECONDS": 15}),
        ({"AGING_SECONDS": 1}, {}),
    ],
)
def test_aliases_that_share_a_database_must_agree_on_what_they_share(settings, one, other):
    settings.TASKS = aliases(default=one, second=other)
    (message,) = check_shared_databases()
    assert message.id == "jobqueue.W004"
    assert "'default'" in message.msg
    assert "'second'" in message.msg


def test_aliases_with_databases_of_their_own_may_differ(settings):
    settings.TASKS = aliases(default={"LEASE_SECONDS": 60}, second={"DATABASE": "other"})
    assert ids(check_shared_databases()) == []


def test_options_of_their_own_may_differ(settings):
    settings.TASKS = aliases(default={"MAX_ATTEMPTS": 1, "BATCH": 5}, second={"TIMEOUT": 5})
    assert ids(check_shared_databases()) == []


def test_malformed_options_are_left_to_their_own_check(settings):
    settings.TASKS = aliases(default=7, second={"LEASE_SECONDS": "x"})
    assert ids(check_shared_databases()) == []
