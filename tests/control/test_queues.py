"""Pause and resume."""

import pytest

from jobqueue import control, hints
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Action, Queue
from tests.storage.making import claim, insert, register


def test_nothing_is_claimed_from_a_paused_queue(storage, actor):
    insert(storage)
    worker = register(storage)

    assert str(control.pause("default", actor, "broken printer")) == "1 paused"

    assert claim(storage, worker) == []
    queue = Queue.objects.get()
    assert (queue.paused, queue.paused_by, queue.paused_reason) == (True, "kim", "broken printer")
    assert queue.paused_at is not None


def test_resumed_queue_is_claimed_from_and_hinted_at(storage, actor, monkeypatch):
    insert(storage)
    seen = []
    monkeypatch.setattr(hints, "send", lambda alias, queues, *rest: seen.append(set(queues)))
    control.pause("default", actor)

    assert str(control.resume("default", actor)) == "1 resumed"

    assert seen == [{"default"}]
    assert len(claim(storage, register(storage))) == 1


def test_doing_it_twice_changes_nothing_the_second_time(actor):
    control.pause("mail", actor, "first")
    assert control.pause("mail", actor, "second").counts == {"skipped: already paused": 1}
    assert Queue.objects.get().paused_reason == "first"

    control.resume("mail", actor)
    assert control.resume("mail", actor).counts == {"skipped: already resumed": 1}
    assert list(Action.objects.order_by("id").values_list("verb", "target")) == [
        ("pause", "mail"),
        ("resume", "mail"),
    ]


@pytest.mark.parametrize("name", ["", "q" * 129, "a\x00b"])
def test_impossible_name_is_refused(actor, name):
    for operate in (control.pause, control.resume):
        with pytest.raises(InvalidArgument):
            operate(name, actor)


def test_two_operators_pause_once(storage, actor):
    """The loser of the race sees a paused queue, not an error."""
    Queue.objects.create(name="mail")
    assert control.pause("mail", actor).changed == 1
    assert control.pause("mail", control.Actor("lee", "admin")).changed == 0
    assert Queue.objects.get().paused_by == "kim"
