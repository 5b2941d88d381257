"""Options: every wrong one is named, with what to do; a wrong one keeps its default."""

from dataclasses import fields
from datetime import timedelta

import pytest
from django.test import override_settings

from jobqueue import conf
from jobqueue.conf import Options, jobqueue_aliases, options_for, parse, parse_max_attempts
from jobqueue.exceptions import InvalidOptions
from jobqueue.retry import Backoff


def test_no_options_are_the_documented_defaults():
    options, problems = parse({})
    assert problems == []
    assert options == Options()
    assert options.database == "default"
    assert options.max_attempts == 5
    assert options.timeout == 1_800
    assert options.retention == {"succeeded": 7 * 86_400, "cancelled": 30 * 86_400, "dead": None}
    assert options.action_retention == 365 * 86_400


def test_every_option_says_what_it_is():
    for option in fields(Options):
        assert option.metadata["doc"].endswith((".", "%."))


def test_an_unknown_option_is_a_problem_that_lists_the_known_ones():
    _, problems = parse({"MAX_ATEMPTS": 3})
    assert [p.option for p in problems] == ["MAX_ATEMPTS"]
    assert "MAX_ATTEMPTS" in problems[0].message


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("MAX_ATTEMPTS", 0),
        ("MAX_ATTEMPTS", -1),
        ("MAX_ATTEMPTS", None),
        ("MAX_ATTEMPTS", True),
        ("MAX_ATTEMPTS", 2.5),
        ("MAX_ATTEMPTS", "5"),
        ("TIMEOUT", 0),
        ("TIMEOUT", None),
        ("TIMEOUT", timedelta(days=31)),
        ("LEASE_SECONDS", float("nan")),
        ("LEASE_SECONDS", "15"),
        ("RETRY", {"bse": 5}),
        ("RETRY", {"base": -5}),
        ("RETRY", 5),
        ("DATABASE", ""),
        ("HINTS", "kafka"),
        ("IMPORTS", "shop.jobs"),
        ("ACCEPT_LOSS", 1),
        ("RETENTION", {"running": 5}),
        ("RETENTION", 5),
        ("ACTION_RETENTION", 3_600),
        ("BATCH", 1.5),
    ],
)
def test_a_value_out_of_range_is_one_problem_and_keeps_the_default(option, value):
    options, problems = parse({option: value})
    assert [p.option for p in problems] == [option]
    assert getattr(options, option.lower()) == getattr(Options(), option.lower())


def test_values_are_read_in_every_documented_form():
    options, problems = parse(
        {
            "MAX_ATTEMPTS": "unlimited",
            "TIMEOUT": timedelta(minutes=2),
            "RETRY": {"base": 60, "factor": 1},
            "RETENTION": {"succeeded": None, "dead": 86_400},
            "IMPORTS": ["shop.jobs"],
        }
    )
    assert problems == []
    assert options.max_attempts is None
    assert options.timeout == 120
    assert options.retry == Backoff(base=60, factor=1)
    assert options.retention == {"succeeded": None, "cancelled": 30 * 86_400, "dead": 86_400}
    assert options.imports == ("shop.jobs",)


def test_queues_may_have_a_retention_of_their_own():
    options, problems = parse(
        {"RETENTION": {"dead": 60, "queues": {"mail": {"succeeded": timedelta(days=1)}}}}
    )
    assert problems == []
    assert options.retention["queues"] == {"mail": {"succeeded": 86_400.0}}
    assert options.retention["dead"] == 60


@pytest.mark.parametrize(
    "value",
    [
        {"queues": {"succeeded": 60}},
        {"queues": {"mail": {"running": 60}}},
        {"queues": {7: {"succeeded": 60}}},
        {"queues": ["mail"]},
        {"mail": {"succeeded": 60}},
        7,
    ],
)
def test_a_retention_that_names_no_state_or_queue_is_a_problem(value):
    _, problems = parse({"RETENTION": value})
    assert [p.option for p in problems] == ["RETENTION"]


def test_a_heartbeat_longer_than_a_third_of_the_lease_is_a_problem():
    _, problems = parse({"LEASE_SECONDS": 6, "HEARTBEAT_SECONDS": 3})
    assert [p.option for p in problems] == ["HEARTBEAT_SECONDS"]


def test_unlimited_attempts_are_none_only_by_the_explicit_word():
    assert parse_max_attempts("unlimited") is None
    assert parse_max_attempts(1) == 1
    for value in (0, -1, None, False, "none", 1_000_001):
        with pytest.raises(ValueError):
            parse_max_attempts(value)


def test_options_that_cannot_be_used_raise_with_every_problem():
    tasks = {"default": {"BACKEND": conf.BACKEND_PATH, "OPTIONS": {"A": 1, "TIMEOUT": 0}}}
    with override_settings(TASKS=tasks), pytest.raises(InvalidOptions) as caught:
        options_for("default")
    assert "A is unknown" in str(caught.value)
    assert "TIMEOUT must be" in str(caught.value)


def test_a_changed_setting_is_seen_at_once():
    tasks = {"default": {"BACKEND": conf.BACKEND_PATH, "OPTIONS": {"BATCH": 7}}}
    before = options_for("default").batch
    with override_settings(TASKS=tasks):
        assert options_for("default").batch == 7
    assert options_for("default").batch == before


def test_only_aliases_of_our_backend_are_ours():
    dummy = "jobqueue.backend.DummyBackend"
    tasks = {
        "default": {"BACKEND": conf.BACKEND_PATH},
        "subclass": {"BACKEND": "tests.tasks.backends.OwnBackend"},
        "dummy": {"BACKEND": dummy},
        "broken": {"BACKEND": "no.such.Backend"},
    }
    with override_settings(TASKS=tasks):
        assert jobqueue_aliases() == ("default", "subclass")
