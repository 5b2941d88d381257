"""Draining a worker: a flag in its row, and who has set it."""

import uuid

import pytest

from jobqueue import control
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Action, Worker
from tests.storage.making import register


def test_a_worker_is_told_once_and_it_is_recorded(storage, actor):
    worker = register(storage)
    assert str(control.drain_worker(worker, actor)) == "1 told to drain"
    assert str(control.drain_worker(str(worker), actor)) == "1 skipped: already draining"
    assert Worker.objects.get(pk=worker).draining
    action = Action.objects.get()
    assert (action.verb, action.actor, action.detail) == ("drain", "kim", {"worker": str(worker)})
    assert action.target.startswith("tests (here:")


def test_the_dead_and_the_unknown_are_not_told(storage, actor):
    dead = register(storage)
    storage.mark_dead(dead, "stopped")
    assert str(control.drain_worker(dead, actor)) == "1 skipped: dead"
    assert str(control.drain_worker(uuid.uuid4(), actor)) == "1 not found"
    assert not Action.objects.exists()


@pytest.mark.parametrize("given", ["host:17", "", None, 7])
def test_what_is_no_identity_is_refused(actor, given):
    with pytest.raises(InvalidArgument, match="Not the identity of a worker"):
        control.drain_worker(given, actor)
