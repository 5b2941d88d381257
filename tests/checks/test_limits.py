"""Limits that tasks share have one set of numbers."""

from types import SimpleNamespace

import pytest

from jobqueue import Limit
from jobqueue.checks import limits


@pytest.fixture
def say(monkeypatch):
    def given(**found):
        tasks = {name: SimpleNamespace(limit=limit) for name, limit in found.items()}
        known = SimpleNamespace(names=lambda: sorted(tasks), get=tasks.__getitem__)
        monkeypatch.setattr(limits, "registry", known)
        return [(message.id, message.msg) for message in limits.check_limits()]

    return given


def test_different_numbers_under_one_name_are_told(say):
    ((number, text),) = say(one=Limit(2, name="api"), two=Limit(3, name="api"), none=None)
    assert number == "jobqueue.W005"
    assert "one, two share the limit 'api'" in text


def test_the_same_numbers_and_other_names_are_fine(say):
    assert say(one=Limit(2, name="api"), two=Limit(2, key="api:{n}"), own=Limit(3)) == []
