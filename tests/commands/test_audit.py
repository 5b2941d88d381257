"""``jobs audit`` finds what is planted, names it, and says so when there is nothing."""

import pytest

from jobqueue.models import Attempt
from tests.app.models import Effect
from tests.storage.making import buried


@pytest.fixture
def gap(storage):
    """A job whose only attempt has number 2."""
    job_id = buried(storage)
    Attempt.objects.filter(job_id=job_id).update(number=2)
    return job_id


def test_clean_database_passes(storage, jobs):
    buried(storage)
    ran = jobs("audit", "--effects", "app.Effect.job_id")
    assert ran.code == 0
    assert ran.out.strip() == "Nothing found: 8 checks passed."


def test_violation_is_named_and_counted(gap, jobs):
    ran = jobs("audit")
    assert ran.code == 1
    assert str(ran.error) == "The audit found 1 violation."
    assert "gap: 1" in ran.out
    assert str(gap) in ran.out


def test_json_lists_violations(gap, jobs):
    ran = jobs("audit", "--json")
    assert ran.code == 1
    assert ran.json["count"] == 1
    (violation,) = ran.json["violations"]
    assert (violation["check"], violation["job_id"]) == ("gap", str(gap))
    assert ran.json["checks"]["gap"] == 1


def test_json_of_a_clean_database_is_empty(jobs):
    ran = jobs("audit", "--json")
    assert ran.code == 0
    assert (ran.json["count"], ran.json["violations"], ran.json["truncated"]) == (0, [], [])


def test_doubled_effects_of_the_project_are_found(storage, jobs):
    job_id = buried(storage)
    for _ in range(2):
        Effect.objects.create(job_id=str(job_id))
    Effect.objects.create(job_id="once")

    ran = jobs("audit", "--effects", "app.Effect.job_id", "--json")

    assert ran.code == 1
    (violation,) = ran.json["violations"]
    assert (violation["check"], violation["job_id"]) == ("duplicate_effect", str(job_id))


def test_limit_says_that_there_may_be_more(storage, jobs):
    for label in ("a", "b", "c"):
        Effect.objects.bulk_create([Effect(job_id=label), Effect(job_id=label)])
    ran = jobs("audit", "--effects", "app.Effect.job_id", "--limit", 2)
    assert "duplicate_effect: 2 or more" in ran.out
    assert str(ran.error) == "The audit found 2 violations."


@pytest.mark.parametrize(
    ("effects", "says"),
    [
        ("app.Effect", "APP.MODEL.FIELD"),
        ("nowhere.Effect.job_id", "nowhere"),
        ("app.Nothing.job_id", "Nothing"),
        ("app.Effect.order", "created, id, job_id, label"),
    ],
)
def test_unknown_effects_say_what_there_is(jobs, effects, says):
    ran = jobs("audit", "--effects", effects)
    assert ran.code == 1
    assert says in str(ran.error)
