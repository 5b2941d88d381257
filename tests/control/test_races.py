"""Two operators at the same moment: each job is changed once, by one of them."""

import threading
from collections.abc import Callable

from django.db import connection, connections

from jobqueue import control
from jobqueue.models import Action
from tests.storage.making import buried, claim, insert, register, states

OPERATORS = ("kim", "lee", "sam")


def together(operate: Callable[[control.Actor], control.Outcome]) -> list[control.Outcome]:
    """Let every operator do the same at once, on a connection of their own."""
    start = threading.Barrier(len(OPERATORS))
    outcomes, errors = [], []

    def run(name):
        try:
            connection.ensure_connection()
            start.wait(30)
            outcomes.append(operate(control.Actor(name, "shell")))
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(name,)) for name in OPERATORS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    return outcomes


def test_each_dead_job_is_requeued_once(storage):
    worker = register(storage)
    dead = [buried(storage, worker) for _ in range(30)]

    outcomes = together(lambda actor: control.requeue(dead, actor))

    assert states(*dead) == ["ready"] * 30
    assert sum(outcome.changed for outcome in outcomes) == 30
    assert sum(Action.objects.values_list("count", flat=True)) == 30
    assert len(claim(storage, worker, limit=100)) == 30


def test_requeue_and_discard_at_once_leave_no_job_half_changed(storage):
    worker = register(storage)
    dead = [buried(storage, worker) for _ in range(30)]

    def operate(actor):
        return (control.discard if actor.name == "kim" else control.requeue)(dead, actor)

    together(operate)

    # Whoever was second found a job that was no longer dead; a discarded one may be requeued.
    assert set(states(*dead)) <= {"ready", "cancelled"}
    done = Action.objects.filter(verb="discard").values_list("count", flat=True)
    assert states(*dead).count("cancelled") <= sum(done)


def test_queue_is_paused_by_one(storage):
    insert(storage)

    outcomes = together(lambda actor: control.pause("default", actor, actor.name))

    assert sorted(outcome.changed for outcome in outcomes) == [0, 0, 1]
    (action,) = Action.objects.all()
    assert action.detail["reason"] == action.actor
