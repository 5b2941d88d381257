"""Keys under a rate are admitted to the moment: remembered, told once, and bounded."""

import pytest

from jobqueue.runtime import rate_windows as rate_windows_module
from jobqueue.runtime.rate_windows import LATE_SECONDS, RateWindows
from tests.runtime.clock import Clock


@pytest.fixture
def clock(monkeypatch):
    fake = Clock()
    monkeypatch.setattr(rate_windows_module, "time", fake)
    return fake


def test_a_key_is_due_once_when_its_time_has_come(clock):
    rate_windows = RateWindows()
    assert rate_windows.next_seconds == float("inf")
    rate_windows.note({"a": 1.0, "b": 3.0})
    assert rate_windows.next_seconds == pytest.approx(1.0 + LATE_SECONDS)
    assert rate_windows.due() == []
    clock.advance(1.1)
    assert rate_windows.next_seconds == 0.0
    assert rate_windows.due() == ["a"]
    assert rate_windows.due() == []
    clock.advance(2.0)
    assert rate_windows.due() == ["b"]


def test_a_later_note_of_the_same_key_counts(clock):
    rate_windows = RateWindows()
    rate_windows.note({"a": 1.0})
    rate_windows.note({"a": 5.0})
    clock.advance(2.0)
    assert rate_windows.due() == []


def test_it_remembers_no_more_than_it_may(clock, monkeypatch):
    monkeypatch.setattr(rate_windows_module, "MOST", 2)
    rate_windows = RateWindows()
    rate_windows.note({"a": 1.0, "b": 1.0, "c": 1.0})
    rate_windows.note({"a": 2.0})
    clock.advance(9.0)
    assert rate_windows.due() == ["a", "b"]
