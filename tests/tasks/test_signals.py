"""task_enqueued, as Django documents it; and no work for nobody."""

import logging

import pytest
from django.db import transaction

from jobqueue import backend as backend_module
from jobqueue import compat
from jobqueue.backend import JobQueueBackend
from jobqueue.compat import FRAMEWORK_LOGGER, signal_is_heard, task_enqueued
from jobqueue.models import Job
from tests.tasks.samples import add

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _ask_log_handlers_anew(monkeypatch):
    monkeypatch.setattr(compat, "_printed", {})


def test_task_enqueued_is_sent_right_after_the_insert_with_the_result(announced):
    with transaction.atomic():
        result = add.enqueue(1)
        assert announced == [result]
    add.enqueue_many([((n,), {}) for n in range(3)])
    assert [r.args for r in announced] == [[1], [0], [1], [2]]


def test_the_sender_is_the_class_of_the_backend():
    senders = []

    def hear(sender, **kwargs):
        senders.append(sender)

    task_enqueued.connect(hear)
    try:
        add.enqueue(1)
    finally:
        task_enqueued.disconnect(hear)
    assert senders == [JobQueueBackend]


def test_a_failing_receiver_does_not_fail_the_caller(caplog, announced):
    def broken(sender, **kwargs):
        raise RuntimeError("receiver bug")

    task_enqueued.connect(broken)
    try:
        result = add.enqueue(1)
    finally:
        task_enqueued.disconnect(broken)
    assert Job.objects.filter(pk=result.id).exists()
    assert announced == [result]
    assert "receiver bug" in caplog.text


def test_the_frameworks_log_line_appears_where_it_is_wanted(caplog):
    with caplog.at_level(logging.DEBUG, logger=FRAMEWORK_LOGGER):
        result = add.enqueue(1)
    assert f"Task id={result.id} path=tests.tasks.samples.add enqueued" in caplog.text


def test_nothing_is_sent_when_only_the_frameworks_log_would_hear_it_and_not_print_it(monkeypatch):
    monkeypatch.setattr(logging.getLogger(FRAMEWORK_LOGGER), "level", logging.WARNING)
    assert not signal_is_heard(task_enqueued, logging.DEBUG)
    monkeypatch.setattr(backend_module.compat, "task_enqueued", None)
    monkeypatch.setattr(backend_module.compat, "signal_is_heard", lambda *args: False)
    add.enqueue(1)
