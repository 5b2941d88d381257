"""The state machine as data agrees with itself, and with the constraints of the tables."""

import pytest

from jobqueue.models import Attempt, Job
from jobqueue.models.row_checks import RowChecks
from jobqueue.states import (
    CHARGED,
    FINISHED,
    LIVE,
    TRANSITIONS,
    WAITING,
    Outcome,
    State,
    is_allowed,
)


def verbs_of(state: State) -> set[str]:
    """Return the verbs that leave a state."""
    return {t.verb for t in TRANSITIONS if state in t.sources}


def test_every_state_is_waiting_running_or_finished_and_only_one_of_them():
    assert set(State) == LIVE | FINISHED
    assert not LIVE & FINISHED
    assert {State.RUNNING} == LIVE - WAITING


def test_every_state_can_be_reached_and_every_live_one_can_be_left():
    reached = set().union(*(t.targets for t in TRANSITIONS))
    assert reached == set(State)
    for state in LIVE:
        assert verbs_of(state)


def test_a_succeeded_job_never_leaves_its_state():
    assert verbs_of(State.SUCCEEDED) == set()
    assert not any(is_allowed(State.SUCCEEDED, state) for state in State)


def test_only_a_running_job_succeeds_and_only_a_ready_one_is_claimed():
    assert [s for s in State if is_allowed(s, State.SUCCEEDED)] == [State.RUNNING]
    assert [s for s in State if is_allowed(s, State.RUNNING)] == [State.READY]


def test_a_new_job_is_never_running_nor_finished():
    assert {s for s in State if is_allowed(None, s)} == {
        State.SCHEDULED,
        State.READY,
        State.BLOCKED,
    }


@pytest.mark.parametrize("state", [State.DEAD, State.CANCELLED])
def test_a_job_that_ended_without_success_can_be_requeued(state):
    assert "requeue" in verbs_of(state)


def test_lost_workers_snoozes_and_cancels_use_up_no_attempt():
    assert {Outcome.FAILED, Outcome.TIMED_OUT} == CHARGED


def test_the_constraints_of_the_tables_name_the_same_states_and_outcomes():
    assert _choices(Job, "jobqueue_job_state", "state__in") == set(State)
    assert _choices(Attempt, "jobqueue_attempt_outcome", "outcome__in") == set(Outcome)


def test_the_finished_constraint_of_the_job_names_the_finished_states():
    condition = _check(Job, "jobqueue_job_finished_has_time")
    named = {tuple(child[1]) for child in _leaves(condition) if child[0] == "state__in"}
    assert named == {tuple(sorted(FINISHED))}


def _check(model, name):
    checks = (c.checks for c in model._meta.constraints if isinstance(c, RowChecks))
    return next(iter(checks))[name]


def _choices(model, name, lookup):
    return set(dict(_leaves(_check(model, name)))[lookup])


def _leaves(condition):
    for child in condition.children:
        if isinstance(child, tuple):
            yield child
        else:
            yield from _leaves(child)
