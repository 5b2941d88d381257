"""What operators may change about jobs that wait, and what is refused."""

import inspect
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from jobqueue import control, hints
from jobqueue.exceptions import InvalidArgument, WrongState
from jobqueue.models import Action
from jobqueue.states import TRANSITIONS, State, is_allowed
from tests.storage.making import buried, claimed, insert, row
from tests.storage.test_operators import in_every_state

HOUR = timedelta(hours=1)
YEAR_ONE = datetime(1, 1, 1, tzinfo=UTC)

CHANGES = {
    "reschedule": lambda ids, actor: control.reschedule(ids, HOUR, actor),
    "run_now": lambda ids, actor: control.run_now(ids, actor),
    "reprioritize": lambda ids, actor: control.reprioritize(ids, 7, actor),
    "move": lambda ids, actor: control.move(ids, "mail", actor),
}


@pytest.fixture
def hinted(monkeypatch):
    told = []
    monkeypatch.setattr(hints, "send", lambda alias, queues, *rest: told.append(set(queues)))
    return told


@pytest.mark.parametrize("verb", CHANGES)
def test_one_action_row_says_who_did_it(storage, actor, verb):
    (job_id,) = insert(storage)
    CHANGES[verb]([job_id], actor)
    action = Action.objects.get()
    assert (action.actor, action.verb, action.job_id, action.count) == ("kim", verb, job_id, 1)


@pytest.mark.parametrize("verb", CHANGES)
def test_running_job_is_refused_with_what_is_allowed(storage, actor, verb):
    held = claimed(storage)
    with pytest.raises(WrongState) as caught:
        control.require_change(CHANGES[verb]([held.id], actor))
    assert (caught.value.current_state, caught.value.allowed_actions) == ("running", ("cancel",))
    assert row(held.id).version == 2
    assert not Action.objects.exists()


@pytest.mark.parametrize("verb", CHANGES)
def test_every_id_gets_its_own_answer(storage, actor, verb):
    dead, (ready,), unknown = buried(storage), insert(storage), uuid.uuid4()
    outcome = CHANGES[verb]([ready, dead, unknown], actor)
    assert outcome.results == {ready: outcome.done, dead: "skipped: dead", unknown: "not found"}


def test_job_is_scheduled_for_a_time(storage, actor, hinted):
    (job_id,) = insert(storage)
    due = datetime(2100, 1, 1, tzinfo=UTC)
    assert str(control.reschedule([job_id], due, actor)) == "1 rescheduled"
    assert (row(job_id).state, row(job_id).run_at) == ("scheduled", due)
    assert Action.objects.get().detail["run_at"] == "2100-01-01T00:00:00+00:00"
    assert hinted == []


def test_delay_counts_from_now(storage, actor):
    (job_id,) = insert(storage)
    control.reschedule([job_id], HOUR, actor)
    assert abs(row(job_id).run_at - timezone.now() - HOUR) < timedelta(minutes=1)


@pytest.mark.parametrize("verb", ["run_now", "reprioritize", "move"])
def test_workers_are_told_of_a_job_that_they_may_have_passed_over(storage, actor, hinted, verb):
    (job_id,) = insert(storage, delay=60.0) if verb == "run_now" else insert(storage)
    CHANGES[verb]([job_id], actor)
    assert hinted == [{row(job_id).queue}]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda ids, actor: control.reschedule(ids, "tomorrow", actor), "datetime or a timedelta"),
        (lambda ids, actor: control.reschedule(ids, YEAR_ONE, actor), "between 1970 and 9999"),
        (lambda ids, actor: control.reprioritize(ids, 101, actor), "-100 to 100"),
        (lambda ids, actor: control.reprioritize(ids, True, actor), "-100 to 100"),
        (lambda ids, actor: control.reprioritize(ids, "high", actor), "-100 to 100"),
        (lambda ids, actor: control.move(ids, "post", actor), "it has default, mail"),
        (lambda ids, actor: control.move(ids, "", actor), "1 to 128 characters"),
        (lambda ids, actor: control.move(ids, "a\x00", actor), "1 to 128 characters"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_changed(storage, actor, call, says):
    (job_id,) = insert(storage)
    with pytest.raises(InvalidArgument, match=says):
        call([job_id], actor)
    assert row(job_id).version == 1


def test_any_queue_is_taken_where_the_alias_names_none(storage, actor, settings):
    settings.TASKS = {"default": settings.TASKS["default"] | {"QUEUES": []}}
    (job_id,) = insert(storage)
    assert control.move([job_id], "new lane", actor).changed == 1


def test_actions_are_what_control_has():
    """Each is a function of `control` that begins with the ids of jobs; there is no other."""
    public = {name: getattr(control, name) for name in control.__all__}
    functions = {name: each for name, each in public.items() if inspect.isfunction(each)}
    first = {name: [*inspect.signature(each).parameters][:1] for name, each in functions.items()}
    assert {name for name, names in first.items() if names == ["ids"]} == set(control.ACTIONS)


def test_actions_leave_only_states_that_the_state_machine_lets_them_leave():
    verbs = {"run_now": "reschedule", "reprioritize": "reschedule", "move": "reschedule"}
    leave = {(t.verb, source) for t in TRANSITIONS for source in t.sources}
    for name, states in control.ACTIONS.items():
        for state in states:
            if name != "run_again":  # makes another job
                assert (verbs.get(name, name), state) in leave


@pytest.mark.parametrize("verb", CHANGES)
def test_changes_lead_where_the_state_machine_allows(storage, actor, verb):
    found = in_every_state(storage)
    CHANGES[verb](list(found.values()), actor)
    for state, job_id in found.items():
        after = State(row(job_id).state)
        assert after == state or is_allowed(State(state), after)
