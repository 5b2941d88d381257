"""Keys under a rate are admitted to the moment: remembered, told once, and bounded."""

import pytest

from jobqueue.runtime import openings as openings_module
from jobqueue.runtime.openings import LATE_SECONDS, Openings
from tests.runtime.clock import Clock


@pytest.fixture
def clock(monkeypatch):
    fake = Clock()
    monkeypatch.setattr(openings_module, "time", fake)
    return fake


def test_a_key_is_due_once_when_its_time_has_come(clock):
    openings = Openings()
    assert openings.next_seconds == float("inf")
    openings.note({"a": 1.0, "b": 3.0})
    assert openings.next_seconds == pytest.approx(1.0 + LATE_SECONDS)
    assert openings.due() == []
    clock.advance(1.1)
    assert openings.next_seconds == 0.0
    assert openings.due() == ["a"]
    assert openings.due() == []
    clock.advance(2.0)
    assert openings.due() == ["b"]


def test_a_later_note_of_the_same_key_counts(clock):
    openings = Openings()
    openings.note({"a": 1.0})
    openings.note({"a": 5.0})
    clock.advance(2.0)
    assert openings.due() == []


def test_it_remembers_no_more_than_it_may(clock, monkeypatch):
    monkeypatch.setattr(openings_module, "MOST", 2)
    openings = Openings()
    openings.note({"a": 1.0, "b": 1.0, "c": 1.0})
    openings.note({"a": 2.0})
    clock.advance(9.0)
    assert openings.due() == ["a", "b"]
