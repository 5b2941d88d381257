"""``jobs prune``."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from jobqueue.models import Action, Job
from tests.storage.making import buried


@pytest.fixture
def old(storage):
    job_id = buried(storage)
    Job.objects.update(finished_at=Now() - timedelta(days=10))
    return job_id


def test_old_jobs_are_pruned(old, jobs):
    assert jobs("prune", "--older-than", "7d").out.strip() == "1 pruned"
    assert not Job.objects.exists()
    assert Action.objects.get().verb == "prune"


def test_dry_run_prunes_nothing(old, jobs):
    ran = jobs("prune", "--older-than", "1w", "--state", "dead", "--dry-run")
    assert ran.out.strip() == "1 would be pruned"
    assert Job.objects.exists()


def test_retention_keeps_dead_letters(old, jobs):
    assert jobs("prune").out.strip() == "0 pruned"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--older-than", "1h"], "at least a day"),
        (["--older-than", "yesterday"], "not a duration"),
        (["--state", "running"], "invalid choice"),
    ],
)
def test_bad_input_prunes_nothing(old, jobs, words, says):
    ran = jobs("prune", *words)
    assert ran.code != 0
    assert says in str(ran.error)
    assert Job.objects.exists()
