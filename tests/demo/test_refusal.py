"""How the thawed worker was refused is read from its own log lines, and nobody else's."""

import json

import pytest

from project.demo.refusal import Refusal, how_refused


@pytest.mark.parametrize(
    ("event", "refusal"),
    [
        ({"event": "job.lease_lost", "job": "j"}, Refusal.GUARD),
        ({"event": "job.commit_resolved", "job": "j", "verdict": "lease lost"}, Refusal.SESSION),
        ({"event": "worker.self_exit"}, Refusal.EXIT),
    ],
)
def test_each_event_of_the_thawed_process_tells(event, refusal):
    assert how([line(**event)]) is refusal


def test_the_first_event_decides():
    lines = [
        line(event="process.started"),
        line(event="job.commit_resolved", job="j", verdict="lease lost"),
        line(event="job.lease_lost", job="j"),
        line(event="worker.self_exit"),
    ]
    assert how(lines, exited=True) is Refusal.SESSION


@pytest.mark.parametrize(
    "event",
    [
        {"event": "job.lease_lost", "job": "j", "pid": 8},
        {"event": "job.lease_lost", "job": "another"},
        {"event": "job.commit_resolved", "job": "j", "verdict": "not committed"},
    ],
)
def test_what_is_about_something_else_tells_nothing(event):
    assert how([line(**event)]) is Refusal.UNKNOWN


def test_a_process_that_is_gone_without_a_word_has_exited():
    assert how([], exited=True) is Refusal.EXIT


def test_lines_that_are_not_events_are_passed_over():
    lines = ["Traceback (most recent call last):", "[1]", "null", line(event="worker.self_exit")]
    assert how(lines) is Refusal.EXIT


def how(lines: list[str], *, exited: bool = False) -> Refusal:
    return how_refused(lines, pid=7, job_id="j", exited=exited)


def line(**facts: object) -> str:
    return json.dumps({"pid": 7} | facts)
