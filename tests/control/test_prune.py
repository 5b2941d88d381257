"""Pruning: small batches that each count themselves in the Action row."""

from datetime import timedelta
from functools import partial

import pytest
from django.db.models.functions import Now

from jobqueue import control
from jobqueue.engine import pruning, retention
from jobqueue.engine.counts import capped_count
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Action, Attempt, Job
from tests.storage.making import buried, insert

DAY = 86_400.0


def ended_ago(job_ids, days: float) -> None:
    Job.objects.filter(id__in=job_ids).update(finished_at=Now() - timedelta(days=days))


@pytest.fixture
def old_dead(storage):
    ids = [buried(storage) for _ in range(3)]
    ended_ago(ids, 10)
    return ids


def test_old_jobs_and_their_attempts_are_deleted(storage, actor, old_dead):
    young = buried(storage)

    assert control.prune(actor, older_than=7 * DAY).counts == {"pruned": 3}

    assert list(Job.objects.values_list("id", flat=True)) == [young]
    assert list(Attempt.objects.values_list("job_id", flat=True)) == [young]


def test_retention_decides_where_nothing_is_said(storage, actor, old_dead):
    """Dead letters are kept by default."""
    cancelled = insert(storage, 2)
    control.cancel(cancelled, actor)
    ended_ago(cancelled, 31)

    assert control.prune(actor).counts == {"pruned": 2}
    assert Job.objects.count() == 3


def test_only_the_states_asked_for_are_deleted(storage, actor, old_dead):
    assert control.prune(actor, older_than=DAY, states=["cancelled"]).counts == {"pruned": 0}
    assert control.prune(actor, older_than=DAY, states=["dead"]).counts == {"pruned": 3}


def test_times_of_a_queue_count_too_also_in_a_dry_run(storage, actor, old_dead, settings):
    mail = [buried(storage) for _ in range(2)]
    ended_ago(mail, 3)
    Job.objects.filter(id__in=mail).update(queue="mail")
    own = {"RETENTION": {"dead": 100 * DAY, "queues": {"mail": {"dead": DAY}}}}
    settings.TASKS = {"default": settings.TASKS["default"] | {"OPTIONS": own}}
    assert str(control.prune(actor, dry_run=True)) == "2 would be pruned"
    assert control.prune(actor).counts == {"pruned": 2}
    assert Action.objects.get().detail["older_than_seconds"]["dead in mail"] == DAY
    assert str(control.prune(actor, older_than=DAY, dry_run=True)) == "3 would be pruned"


def test_dry_run_counts_and_deletes_nothing(actor, old_dead):
    assert str(control.prune(actor, older_than=DAY, dry_run=True)) == "3 would be pruned"
    assert Job.objects.count() == 3
    assert not Action.objects.exists()


def test_a_dry_run_counts_no_further_than_anybody_reads(actor, old_dead, monkeypatch):
    monkeypatch.setattr(pruning, "capped_count", partial(capped_count, limit=2))
    assert str(control.prune(actor, older_than=DAY, dry_run=True)) == "2 or more would be pruned"


def test_batches_add_up_in_one_action_row(actor, old_dead, monkeypatch):
    monkeypatch.setattr(retention, "PRUNE_BATCH", 2)
    seen = []

    control.prune(actor, older_than=DAY, progress=seen.append)

    assert seen == [2, 3]
    action = Action.objects.get()
    assert (action.verb, action.count, action.actor) == ("prune", 3, "kim")


def test_interrupted_prune_has_recorded_what_it_deleted(actor, old_dead, monkeypatch):
    monkeypatch.setattr(retention, "PRUNE_BATCH", 2)

    def interrupt(count):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        control.prune(actor, older_than=DAY, progress=interrupt)
    assert Action.objects.get().count == 2
    assert Job.objects.count() == 1


def test_attempts_younger_than_a_day_are_kept_whatever_is_asked(actor):
    with pytest.raises(InvalidArgument, match="at least a day"):
        control.prune(actor, older_than=DAY - 1)


def test_live_states_are_refused(actor):
    with pytest.raises(InvalidArgument, match="running"):
        control.prune(actor, states=["running"])
