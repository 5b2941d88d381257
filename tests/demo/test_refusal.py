"""How the thawed worker was refused is read from its own log lines, and nobody else's."""

import json

import pytest

from project.demo.refusal import EVENTS, Refusal, how_refused


@pytest.mark.parametrize(("event", "refusal"), EVENTS.items())
def test_each_event_of_the_thawed_process_tells(event, refusal):
    assert how_refused([line(event)], pid=7, exited=False) is refusal


def test_the_first_event_decides():
    lines = [line("worker.started"), line("job.session_ended"), line("worker.self_exit")]
    assert how_refused(lines, pid=7, exited=True) is Refusal.SESSION


def test_another_process_s_events_tell_nothing():
    assert how_refused([line("job.lease_lost", pid=8)], pid=7, exited=False) is Refusal.UNKNOWN


def test_a_process_that_is_gone_without_a_word_has_exited():
    assert how_refused([], pid=7, exited=True) is Refusal.EXIT


def test_lines_that_are_not_events_are_passed_over():
    lines = ["Traceback (most recent call last):", "[1]", "null", line("job.lease_lost")]
    assert how_refused(lines, pid=7, exited=False) is Refusal.GUARD


def line(event: str, pid: int = 7) -> str:
    return json.dumps({"event": event, "pid": pid})
