"""What the tables refuse, whoever writes: bad states cannot be stored, so nobody must check."""

from datetime import UTC, datetime
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from jobqueue.models import Attempt, Job, JobTag, Step, Worker
from jobqueue.states import FINISHED, Outcome, State

NOW = datetime(2030, 6, 1, tzinfo=UTC)
OWNED: dict[str, Any] = {"worker": uuid4(), "claimed_at": NOW, "deadline": NOW}


def fields_of(state: str) -> dict[str, Any]:
    """Return what a job in `state` must carry."""
    return {
        "state": state,
        **(OWNED if state == State.RUNNING else {}),
        "finished_at": NOW if state in FINISHED else None,
        "reason": "unknown task" if state == State.BLOCKED else "",
    }


def create(**changes: Any) -> Job:
    fields = {
        "backend": "default",
        "task": "app.task",
        "queue": "default",
        "arguments": {"args": [], "kwargs": {}},
        "run_at": NOW,
        "rank": 0,
        "enqueued_at": NOW,
        "timeout": 60.0,
        "fence": 3,
        "attempts": 2,
        **fields_of(State.READY),
    }
    return Job.objects.create(**{**fields, **changes})


def create_attempt(job_id: object = None, **changes: Any) -> Attempt:
    fields = {
        "job_id": job_id or uuid4(),
        "number": 1,
        "fence": 1,
        "worker": uuid4(),
        "task": "app.task",
        "queue": "default",
        "outcome": "failed",
        "charged": True,
        "started_at": NOW,
        "finished_at": NOW,
    }
    return Attempt.objects.create(**{**fields, **changes})


def accepts(**changes: Any) -> bool:
    try:
        with transaction.atomic():
            create(**changes)
    except IntegrityError:
        return False
    return True


# --- the state machine and the constraints say the same -------------------------------------------


@pytest.mark.parametrize("state", list(State))
def test_every_state_of_the_machine_can_be_stored(state: State) -> None:
    assert accepts(**fields_of(state))


def test_no_other_state_can_be_stored() -> None:
    for word in ("", "READY", "failed", "queued"):
        assert not accepts(state=word)


@pytest.mark.parametrize("state", list(State))
def test_owner_and_times_are_those_of_the_state_in_every_combination(state: State) -> None:
    accepted = {
        present
        for present in product([False, True], repeat=4)
        if accepts(
            **{
                **fields_of(state),
                "worker": OWNED["worker"] if present[0] else None,
                "claimed_at": NOW if present[1] else None,
                "deadline": NOW if present[2] else None,
                "finished_at": NOW if present[3] else None,
            }
        )
    }
    running = state == State.RUNNING
    assert accepted == {(running, running, running, state in FINISHED)}


@pytest.mark.parametrize("state", list(State))
def test_only_a_success_has_a_result(state: State) -> None:
    assert accepts(**fields_of(state), result=1) == (state == State.SUCCEEDED)


@pytest.mark.parametrize("state", list(State))
def test_only_a_blocked_job_must_say_why(state: State) -> None:
    assert accepts(**{**fields_of(state), "reason": ""}) == (state != State.BLOCKED)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_can_be_stored(outcome: Outcome) -> None:
    create_attempt(outcome=outcome)


def test_no_other_outcome_can_be_stored() -> None:
    with pytest.raises(IntegrityError, match="jobqueue_attempt_outcome"):
        create_attempt(outcome="crashed")


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "changes"),
    [
        ("jobqueue_job_counts", {"fence": -1, "attempts": 0}),
        ("jobqueue_job_counts", {"attempts": -1}),
        ("jobqueue_job_counts", {"failures": -1}),
        ("jobqueue_job_counts", {"failures": 3}),
        ("jobqueue_job_counts", {"attempts": 4}),
        ("jobqueue_job_counts", {"suspicions": -1}),
        ("jobqueue_job_counts", {"pending": -1}),
        ("jobqueue_job_max_attempts", {"max_attempts": 0}),
        ("jobqueue_job_priority", {"priority": 101}),
        ("jobqueue_job_priority", {"priority": -101}),
        ("jobqueue_job_on_crash", {"on_crash": "ignore"}),
    ],
)
def test_impossible_numbers_are_refused(constraint: str, changes: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=constraint):
        create(**changes)


@pytest.mark.parametrize("changes", [{"number": 0}, {"fence": 0}])
def test_attempts_and_their_fences_count_from_one(changes: dict[str, int]) -> None:
    with pytest.raises(IntegrityError, match="jobqueue_attempt_numbers"):
        create_attempt(**changes)


# --- one row each ---------------------------------------------------------------------------------

UNIQUE = "(?i)unique.*jobqueue_"


def test_a_job_succeeds_once() -> None:
    first = create_attempt(outcome="succeeded")
    with pytest.raises(IntegrityError, match=UNIQUE):
        create_attempt(first.job_id, number=2, fence=2, outcome="succeeded")


def test_one_claim_leaves_one_attempt() -> None:
    first = create_attempt()
    with pytest.raises(IntegrityError, match=UNIQUE):
        create_attempt(first.job_id, number=2, fence=1)


def test_a_number_is_given_once() -> None:
    first = create_attempt()
    with pytest.raises(IntegrityError, match=UNIQUE):
        create_attempt(first.job_id, number=1, fence=2)


def test_other_jobs_have_numbers_and_fences_of_their_own() -> None:
    create_attempt(outcome="succeeded")
    create_attempt(outcome="succeeded")
    assert Attempt.objects.count() == 2


def test_a_step_and_a_tag_are_recorded_once_a_job() -> None:
    job_id = uuid4()
    step: dict[str, Any] = {"job_id": job_id, "name": "charge", "result": 1, "fence": 1}
    Step.objects.create(**step, recorded_at=NOW)
    with pytest.raises(IntegrityError, match=UNIQUE):
        Step.objects.create(**step, recorded_at=NOW)
    JobTag.objects.create(job_id=job_id, tag="order:1")
    with pytest.raises(IntegrityError, match=UNIQUE):
        JobTag.objects.create(job_id=job_id, tag="order:1")


@pytest.mark.parametrize(("dead", "dead_at"), [(True, None), (False, NOW)])
def test_a_dead_worker_has_a_time_of_death(dead: bool, dead_at: datetime | None) -> None:
    with pytest.raises(IntegrityError, match="jobqueue_worker_dead_has_time"):
        Worker.objects.create(
            id=uuid4(),
            pid=1,
            started_at=NOW,
            heartbeat_at=NOW,
            lease_until=NOW,
            dead=dead,
            dead_at=dead_at,
        )
