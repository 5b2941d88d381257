"""Hints: after the outermost commit, once per transaction and queue, and never an error."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import TestCase

from jobqueue import hints
from tests.tasks.making import rolled_back
from tests.tasks.samples import add, send


def test_outside_a_transaction_a_hint_is_sent_at_once(committing, sent_hints):
    add.enqueue(1)
    assert sent_hints == [("default", {"default"})]


def test_a_transaction_sends_each_queue_once_whatever_it_enqueued(committing, sent_hints):
    with transaction.atomic():
        for n in range(50):
            add.enqueue(n)
            with transaction.atomic():
                send.enqueue("a@b")
                add.enqueue(n)
        assert len(connection.run_on_commit) <= 1 + 50  # one each for `mail` in its savepoint
    assert sent_hints == [("default", {"default", "mail"})]
    sent_hints.clear()
    with transaction.atomic():
        add.enqueue(1)
    assert sent_hints == [("default", {"default"})]


def test_a_hint_lost_with_its_savepoint_does_not_silence_a_later_one(committing, sent_hints):
    with transaction.atomic():
        with rolled_back():
            add.enqueue(1)
        add.enqueue(2)
    assert sent_hints == [("default", {"default"})]


def test_a_hint_made_in_a_savepoint_does_not_stand_for_one_made_around_it(committing, sent_hints):
    with transaction.atomic():
        with rolled_back():
            with transaction.atomic():
                add.enqueue(1)
            add.enqueue(2)
        with transaction.atomic():
            add.enqueue(3)
    assert sent_hints == [("default", {"default"})]


def test_a_hint_made_before_a_savepoint_survives_its_rollback(committing, sent_hints):
    with transaction.atomic():
        add.enqueue(1)
        with rolled_back():
            add.enqueue(2)
    assert sent_hints == [("default", {"default"})]


def test_a_rolled_back_transaction_leaves_nothing_behind(committing, sent_hints):
    with rolled_back():
        send.enqueue("a@b")
    with transaction.atomic():
        add.enqueue(1)
    assert sent_hints == [("default", {"default"})]


def test_a_job_of_the_future_sends_no_hint(committing, sent_hints):
    add.using(run_after=timedelta(hours=1)).enqueue(1)
    with transaction.atomic():
        add.using(run_after=timedelta(hours=1)).enqueue_many([((1,), {})])
    assert sent_hints == []


def test_the_callers_own_callbacks_run_beside_the_hints(committing, sent_hints):
    called = []
    with transaction.atomic():
        transaction.on_commit(lambda: called.append(1))
        add.enqueue(1)
        transaction.on_commit(lambda: called.append(2))
    assert called == [1, 2]
    assert len(sent_hints) == 1


@pytest.mark.parametrize("inside", [True, False])
def test_a_failing_hint_is_nobodys_error(committing, monkeypatch, caplog, inside):
    def broken(alias, queues):
        raise OSError("no route to host")

    monkeypatch.setattr(hints, "send", broken)
    if inside:
        with transaction.atomic():
            add.enqueue(1)
    else:
        add.enqueue(1)
    assert "hint.failed" in caplog.text
    assert "no route to host" in caplog.text


class InATestCase(TestCase):
    """`captureOnCommitCallbacks` sees the hints, each time again once they have been executed."""

    @pytest.fixture(autouse=True)
    def _hints(self, sent_hints):
        self.sent = sent_hints

    def test_hints_are_captured(self):
        for _ in range(2):
            with self.captureOnCommitCallbacks(execute=True) as callbacks:
                add.enqueue(1)
            assert len(callbacks) == 1
        assert self.sent == [("default", {"default"})] * 2
