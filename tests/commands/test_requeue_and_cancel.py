"""Changing jobs from a shell."""

import getpass
import uuid

import pytest

from jobqueue.models import Action, Job, Queue
from tests.storage.making import QUEUE, TASK, buried, claim, claimed, insert, register, row, states


def buried_many(storage, count: int) -> list[uuid.UUID]:
    worker = register(storage)
    return [buried(storage, worker) for _ in range(count)]


# --- requeue --------------------------------------------------------------------------------------


def test_ids_are_requeued_and_counted(storage, jobs):
    dead = buried(storage)
    (ready,) = insert(storage)

    ran = jobs("requeue", dead, ready)

    assert ran.code == 0
    assert ran.out.strip() == "1 requeued, 1 skipped: ready"
    assert states(dead) == ["ready"]


def test_actor_is_the_user_of_the_operating_system(storage, jobs):
    jobs("requeue", buried(storage))
    action = Action.objects.get()
    assert (action.actor, action.surface) == (getpass.getuser(), "shell")


def test_actor_can_be_named_before_or_after_the_subcommand(storage, jobs):
    one, other = buried_many(storage, 2)
    jobs("requeue", one, "--actor", "deploy bot")
    jobs("--actor", "kim", "requeue", other)
    assert list(Action.objects.order_by("id").values_list("actor", flat=True)) == [
        "deploy bot",
        "kim",
    ]


def test_nothing_changed_is_an_error_that_says_why(storage, jobs):
    (ready,) = insert(storage)
    ran = jobs("requeue", ready)
    assert ran.code == 1
    assert str(ran.error) == f"{ready}: skipped: ready. Nothing was changed."


def test_malformed_id_changes_nothing(storage, jobs):
    dead = buried(storage)
    ran = jobs("requeue", dead, "seventeen")
    assert "'seventeen'" in str(ran.error)
    assert "Nothing was changed." in str(ran.error)
    assert states(dead) == ["dead"]


def test_filter_requeues_what_matches_only(storage, jobs):
    dead = buried_many(storage, 3)
    Job.objects.filter(id=dead[0]).update(task="other.task")
    Job.objects.filter(id=dead[1]).update(error_fingerprint="f" * 32)

    ran = jobs("requeue", "--state", "dead", "--task", TASK, "--error-fingerprint", "f" * 32)

    assert ran.out.strip() == "1 requeued"
    assert states(*dead) == ["dead", "ready", "dead"]


def test_walk_over_several_portions_takes_each_job_once(storage, jobs, monkeypatch):
    monkeypatch.setattr("jobqueue.engine.bulk_walk.MAX_ROWS", 2)
    dead = buried_many(storage, 5)
    assert jobs("requeue", "--state", "dead", "--queue", QUEUE).out.strip() == "5 requeued"
    assert states(*dead) == ["ready"] * 5
    assert sum(Action.objects.values_list("count", flat=True)) == 5


def test_filter_that_matches_nothing_is_no_error(jobs):
    ran = jobs("requeue", "--state", "cancelled")
    assert (ran.code, ran.out.strip()) == (0, "0 requeued")


def test_dry_run_counts_and_changes_nothing(storage, jobs):
    dead = buried_many(storage, 2)
    assert jobs("requeue", "--state", "dead", "--dry-run").out.strip() == (
        "2 jobs would be requeued."
    )
    assert jobs("requeue", dead[0], uuid.uuid4(), "--dry-run").out.strip() == (
        "1 job would be requeued."
    )
    assert states(*dead) == ["dead", "dead"]
    assert not Action.objects.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "--state cancelled or dead"),
        (["--task", "app.task"], "--state cancelled or dead"),
        ([str(uuid.uuid4()), "--state", "dead"], "not both"),
        (["--state", "running"], "invalid choice"),
        (["--state", "dead", "--queue", ""], "1 to 128 characters"),
    ],
)
def test_unclear_choice_changes_nothing_and_says_what_to_do(storage, jobs, words, says):
    dead = buried(storage)
    ran = jobs("requeue", *words)
    assert ran.code != 0
    assert says in str(ran.error)
    assert states(dead) == ["dead"]


# --- cancel, discard ------------------------------------------------------------------------------


def test_waiting_jobs_are_cancelled(storage, jobs):
    waiting = insert(storage, 2)
    assert jobs("cancel", *waiting, "--reason", "typo").out.strip() == "2 cancelled"
    assert row(waiting[0]).reason == "typo"


def test_running_job_is_asked_to_stop_or_ended_by_force(storage, jobs):
    held = claimed(storage)

    assert jobs("cancel", held.id).out.strip() == "1 asked"
    assert row(held.id).state == "running"
    assert "to stop: cancelled by" in jobs("show", held.id).out

    assert jobs("cancel", held.id, "--force").out.strip() == "1 cancelled"
    assert row(held.id).fence == held.fence + 1


def test_dead_job_is_discarded(storage, jobs):
    dead = buried(storage)
    assert jobs("discard", dead).out.strip() == "1 discarded"
    assert states(dead) == ["cancelled"]


# --- pause, resume --------------------------------------------------------------------------------


def test_queue_is_paused_and_resumed(storage, jobs):
    insert(storage)
    worker = register(storage)

    assert jobs("pause", QUEUE, "--reason", "stocktaking").out.strip() == "1 paused"
    assert Queue.objects.get().paused_reason == "stocktaking"
    assert claim(storage, worker) == []

    assert jobs("pause", QUEUE).code == 1
    assert jobs("resume", QUEUE).out.strip() == "1 resumed"
    assert len(claim(storage, worker)) == 1


def test_impossible_queue_name_is_refused(jobs):
    assert jobs("pause", "q" * 129).code != 0
    assert not Queue.objects.exists()


def test_a_queue_that_nothing_has_heard_of_is_paused_only_by_force(storage, jobs):
    """Most likely misspelled: the real one would run on while its operator trusts that it rests."""
    refused = jobs("pause", "mial")
    assert refused.code == 1
    assert "Did you mean mail?" in str(refused.error)
    assert jobs("pause", "mial", "--force").out.strip() == "1 paused"
    insert(storage, queue="import")
    assert jobs("pause", "import").out.strip() == "1 paused"
