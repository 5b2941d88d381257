"""Old jobs: found by rules in one walk, deleted and scrubbed unless they have moved on."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db.models.functions import Now

from jobqueue.models import Action, Attempt, Job
from jobqueue.payload import SCRUBBED
from jobqueue.storage import Storage
from jobqueue.storage.connections import transaction_on
from jobqueue.storage.records import AgeRule
from jobqueue.storage.retention import FIRST_ID
from tests.storage.making import buried, claimed, insert, register, run_sql

HOUR = 3_600.0
SECRET = '{"args":["token-4711"],"kwargs":{}}'


def ended(storage: Storage, hours: float, count: int = 1, state="succeeded", queue="default"):
    """Make jobs that ended some hours ago; return their ids, ascending."""
    ids = insert(storage, count, queue=queue, arguments=SECRET)
    then = Now() - timedelta(hours=hours)
    Job.objects.filter(pk__in=ids).update(state=state, finished_at=then, enqueued_at=then)
    return sorted(ids)


def found(storage: Storage, *rules: AgeRule, **options) -> list[UUID]:
    """Walk to the end, and return what was found."""
    after, everything = FIRST_ID, []
    while after is not None:
        ids, after = storage.find_old(rules, after, **{"window": 10, "limit": 10} | options)
        everything += ids
    return everything


def rule(state: str, hours: float | None, queue: str | None = None) -> AgeRule:
    return AgeRule(state, queue, None if hours is None else hours * HOUR)


def test_the_rule_of_a_queue_goes_before_that_of_its_state(storage: Storage) -> None:
    young = ended(storage, 2)
    mail = ended(storage, 2, queue="mail")
    ended(storage, 9, queue="kept")
    old = ended(storage, 9)
    rules = [rule("succeeded", 5), rule("succeeded", 1, "mail"), rule("succeeded", None, "kept")]
    assert found(storage, *rules) == sorted(mail + old)
    assert found(storage, *reversed(rules)) == sorted(mail + old)
    assert young[0] not in found(storage, *rules)


def test_states_without_a_rule_and_jobs_that_have_not_ended_are_kept(storage: Storage) -> None:
    ended(storage, 9, state="dead")
    cancelled = ended(storage, 9, state="cancelled")
    claimed(storage)
    insert(storage, 3)
    assert found(storage, rule("cancelled", 1), rule("dead", None)) == cancelled


def test_a_walk_sees_every_job_once_whatever_its_steps(storage: Storage) -> None:
    """Also where more is old than one batch holds, and where a window holds nothing old."""
    old = ended(storage, 9, 7)
    between = ended(storage, 9, 25, state="dead")
    old += ended(storage, 9, 6)
    for window, limit in ((5, 2), (4, 10), (100, 3), (1, 1)):
        assert found(storage, rule("succeeded", 1), window=window, limit=limit) == sorted(old)
    assert not set(between) & set(old)


def test_a_walk_ends_where_everything_is_too_young(storage: Storage) -> None:
    ended(storage, 9, 3)
    ended(storage, 0.1, 10)
    looks = [FIRST_ID]
    while (look := storage.find_old([rule("succeeded", 1)], looks[-1], 3, 10)).after is not None:
        looks.append(look.after)
    assert len(looks) == 2


def test_what_has_moved_on_since_it_was_found_is_left(storage: Storage) -> None:
    requeued, again, gone = (buried(storage) for _ in range(3))
    Job.objects.update(finished_at=Now() - timedelta(hours=9))
    storage.requeue_many([requeued], 60.0)
    Job.objects.filter(pk=again).update(finished_at=Now())
    assert storage.prune([requeued, again, gone], HOUR) == ["dead"]
    assert set(Job.objects.values_list("pk", flat=True)) == {requeued, again}
    assert Attempt.objects.count() == 2


def test_arguments_are_scrubbed_once_and_only_of_what_will_not_run_again(storage: Storage) -> None:
    (succeeded,) = ended(storage, 9)
    (cancelled,) = ended(storage, 9, state="cancelled")
    (dead,) = ended(storage, 9, state="dead")
    (young,) = ended(storage, 0.5)
    rules = [rule("succeeded", 1), rule("cancelled", 1)]
    ids = found(storage, *rules, unscrubbed=True)
    assert ids == sorted([succeeded, cancelled])
    assert storage.scrub_arguments([*ids, dead, young], HOUR) == 2
    assert found(storage, *rules, unscrubbed=True) == []
    for each, text in ((succeeded, SCRUBBED), (cancelled, SCRUBBED), (dead, SECRET)):
        sql = "SELECT arguments FROM jobqueue_job WHERE id = %s"
        ((kept,),) = run_sql(storage.connection, sql, [param(storage, each)])
        assert kept in (text, {"scrubbed": True}, {"args": ["token-4711"], "kwargs": {}})
        assert ("4711" in str(kept)) == (text == SECRET)
    assert Job.objects.get(pk=succeeded).version == 2


def param(storage: Storage, job_id: UUID) -> object:
    return job_id if storage.vendor == "postgresql" else job_id.hex


@pytest.mark.postgres_only("SQLite has no row locks")
def test_locked_jobs_are_passed_over(storage: Storage, other: Storage) -> None:
    locked, free = ended(storage, 9, 2)
    with transaction_on(other.connection):
        run_sql(other.connection, "SELECT 1 FROM jobqueue_job WHERE id = %s FOR UPDATE", [locked])
        assert storage.scrub_arguments([locked, free], HOUR) == 1
        assert storage.prune([locked, free], HOUR) == ["succeeded"]
    assert list(Job.objects.values_list("pk", flat=True)) == [locked]


def test_a_worker_that_holds_nothing_is_none_of_it(storage: Storage) -> None:
    register(storage)
    assert storage.prune([], HOUR) == []
    assert storage.scrub_arguments([], HOUR) == 0


def done(hours: float, count: int = 1) -> None:
    """Write down something that an operator did some hours ago."""
    then = Now() - timedelta(hours=hours)
    for _ in range(count):
        Action.objects.create(at=then, actor="kim", surface="shell", verb="pause", target="mail")


def test_what_operators_did_is_pruned_a_batch_at_a_time(storage: Storage) -> None:
    done(hours=9, count=4)
    done(hours=0.5)
    assert [storage.prune_actions(3, HOUR) for _ in range(3)] == [3, 1, 0]
    assert Action.objects.count() == 1


@pytest.mark.postgres_only("SQLite has no row locks")
def test_pruning_passes_over_actions_that_are_locked(storage: Storage, other: Storage) -> None:
    done(hours=9, count=2)
    with transaction_on(other.connection):
        run_sql(other.connection, "SELECT 1 FROM jobqueue_action LIMIT 1 FOR UPDATE")
        assert storage.prune_actions(3, HOUR) == 1
    assert Action.objects.count() == 1
