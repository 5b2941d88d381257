"""Jobs made by hand: in somebody's name, only where the task allows it; and again, as a new job."""

import uuid
from datetime import timedelta

import pytest
from django.db import transaction

from jobqueue import control, hints, task
from jobqueue.exceptions import InvalidArgument, TaskNotExposed, TaskNotRegistered, WrongState
from jobqueue.models import Action, Job, JobTag
from tests.storage.making import buried, claimed, insert, row, run_sql
from tests.storage.test_operators import in_every_state

HERE = __name__


@task(expose={"staff"})
def for_staff(order_id, urgent=False):
    return order_id


@task(expose={"api"}, queue_name="mail")
def for_api():
    pass


@task
def for_nobody():
    pass


@pytest.fixture
def kim():
    return control.Actor("kim", "admin")


# --- enqueue on behalf ----------------------------------------------------------------------------


def test_job_is_made_in_the_actors_name_with_its_action(kim):
    result = control.enqueue(f"{HERE}.for_staff", [7], {"urgent": True}, kim)

    job = Job.objects.get()
    assert (str(job.id), job.created_by) == (result.id, "kim")
    assert job.arguments == {"args": [7], "kwargs": {"urgent": True}}
    action = Action.objects.get()
    assert (action.verb, action.actor, action.job_id) == ("enqueue", "kim", job.id)
    assert action.target == f"{HERE}.for_staff"


def test_its_options_are_those_that_are_given(kim):
    control.enqueue(
        f"{HERE}.for_staff",
        [7],
        {},
        kim,
        queue="mail",
        priority=5,
        run_after=timedelta(hours=1),
        tags=["order:7"],
        max_attempts=1,
    )
    job = Job.objects.get()
    assert (job.queue, job.priority, job.state, job.max_attempts) == ("mail", 5, "scheduled", 1)
    assert JobTag.objects.get().tag == "order:7"


@pytest.mark.parametrize(
    ("surface", "name"),
    [
        ("admin", "for_api"),
        ("page", "for_nobody"),
        ("api", "for_staff"),
        ("api", "no_such_task"),
    ],
)
def test_surface_is_refused_a_task_that_it_is_not_offered(surface, name):
    """Also one that does not exist, in the same words."""
    with pytest.raises(TaskNotExposed, match=rf"No task '{HERE}\.{name}' is offered here"):
        control.enqueue(f"{HERE}.{name}", [], {}, control.Actor("kim", surface))
    assert not Job.objects.exists()
    assert not Action.objects.exists()


@pytest.mark.parametrize("surface", ["admin", "page"])
def test_staff_may_enqueue_what_is_exposed_to_staff(surface):
    control.enqueue(f"{HERE}.for_staff", [7], {}, control.Actor("kim", surface))
    assert Job.objects.count() == 1


def test_shell_may_enqueue_any_task(actor):
    control.enqueue(f"{HERE}.for_nobody", [], {}, actor)
    with pytest.raises(TaskNotRegistered):
        control.enqueue(f"{HERE}.no_such_task", [], {}, actor)
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("args", "options", "says"),
    [
        ([], {}, "missing a required argument"),
        ([7], {"priority": 1_000}, "priority"),
        ([7], {"queue": "post"}, "post"),
        ([7], {"tags": [""]}, "tag"),
        ([7], {"max_attempts": 0}, "max_attempts"),
        ([object()], {}, "pass text, a number"),
        (["\x00"], {}, "NUL"),
        ([7], {"backend": "elsewhere"}, "it has default"),
        ([7], {"run_after": timedelta(days=-40_000)}, "run_after"),
    ],
)
def test_what_cannot_be_is_refused(kim, args, options, says):
    with pytest.raises(InvalidArgument, match=says):
        control.enqueue(f"{HERE}.for_staff", args, {}, kim, **options)
    assert not Job.objects.exists()
    assert not Action.objects.exists()


def test_job_stands_and_falls_with_the_callers_transaction(kim):
    with transaction.atomic():
        control.enqueue(f"{HERE}.for_staff", [7], {}, kim)
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert not Action.objects.exists()


# --- run again ------------------------------------------------------------------------------------


def test_ended_jobs_are_copied_and_stay_as_they_are(storage, actor):
    found = in_every_state(storage)
    before = {state: row(job_id).version for state, job_id in found.items()}

    outcome = control.run_again(found.values(), actor)

    copied = {found[state] for state in ("succeeded", "dead", "cancelled")}
    assert set(outcome.copies) == copied
    assert outcome.counts["copied"] == 3
    assert {s: row(i).version for s, i in found.items()} == before
    for old, new in outcome.copies.items():
        assert (row(new).copied_from, row(new).state) == (old, "ready")


def test_copy_has_what_the_job_was_made_with_and_none_of_its_history(storage, actor):
    held = claimed(
        storage,
        arguments='{"args":[1e22],"kwargs":{"n":1.0}}',
        priority=5,
        max_attempts=3,
        on_crash="bury",
        timeout=7.5,
        tags=("order:7", "mail"),
    )
    control.cancel([held.id], actor, force=True)

    (new,) = control.run_again([held.id], actor).copies.values()

    old, copy = row(held.id), row(new)
    for name in ("task", "queue", "priority", "max_attempts", "on_crash", "timeout", "backend"):
        assert getattr(copy, name) == getattr(old, name)
    assert (copy.attempts, copy.fence, copy.reason, copy.created_by) == (0, 0, "", "kim")
    assert text_of_arguments(new) == '{"args":[1e22],"kwargs":{"n":1.0}}'
    tags = JobTag.objects.filter(job_id=new).order_by("id")
    assert list(tags.values_list("tag", flat=True)) == ["order:7", "mail"]


def text_of_arguments(job_id) -> str:
    from django.db import connection

    cast = "CAST(arguments AS text)"
    wanted = job_id if connection.vendor == "postgresql" else job_id.hex
    ((text,),) = run_sql(connection, f"SELECT {cast} FROM jobqueue_job WHERE id = %s", [wanted])
    return text


def test_action_names_the_copy_and_workers_are_told(storage, actor, monkeypatch):
    told = []
    monkeypatch.setattr(hints, "send", lambda alias, queues, *rest: told.append(set(queues)))
    dead = buried(storage)
    (new,) = control.run_again([dead], actor).copies.values()
    action = Action.objects.get()
    assert (action.verb, action.job_id, action.detail["copies"]) == ("run_again", dead, [str(new)])
    assert told == [{"default"}]


def test_job_that_has_not_ended_is_refused(storage, actor):
    (ready,) = insert(storage)
    with pytest.raises(WrongState, match="cannot be copied"):
        control.require_change(control.run_again([ready], actor))
    assert Job.objects.count() == 1


def test_copy_of_a_unique_job_holds_its_key_unless_another_does(storage, actor):
    one, other = (
        control.enqueue(f"{HERE}.for_nobody", [], {}, actor, unique_key=key).id
        for key in ("free", "held")
    )
    control.cancel([one, other], actor)
    twin = control.enqueue(f"{HERE}.for_nobody", [], {}, actor, unique_key="held").id

    outcome = control.run_again([one, other], actor)

    assert outcome.counts == {"copied": 1, "has a twin": 1}
    (copy,) = outcome.copies.values()
    assert row(copy).unique_key == "free"
    assert str(Job.objects.get(unique_key="held", state="ready").id) == twin
    with pytest.raises(InvalidArgument, match="holds the unique key"):
        control.require_change(control.run_again([other], actor))


@pytest.mark.sqlite_only("PostgreSQL stores no document that is not JSON")
def test_job_whose_arguments_cannot_be_read_is_not_copied(storage, actor):
    dead = buried(storage)
    run_sql(storage.connection, "UPDATE jobqueue_job SET arguments = 'x'")
    outcome = control.run_again([dead], actor)
    assert outcome.results == {dead: "unreadable"}
    with pytest.raises(InvalidArgument, match="cannot be read"):
        control.require_change(outcome)


def test_staff_run_again_only_what_they_may_enqueue(storage, actor, kim):
    offered, other = (
        control.enqueue(f"{HERE}.{name}", args, {}, actor).id
        for name, args in (("for_staff", [7]), ("for_nobody", []))
    )
    control.cancel([offered, other], actor)

    outcome = control.run_again([offered, other], kim)

    assert outcome.counts == {"copied": 1, "not offered": 1}
    assert Job.objects.get(copied_from=offered).created_by == "kim"
    with pytest.raises(TaskNotExposed):
        control.require_change(control.run_again([other], kim))
    assert control.run_again([other], actor).changed == 1


def test_too_many_at_once_are_refused(actor):
    with pytest.raises(InvalidArgument, match="At most 1,000"):
        control.run_again([uuid.uuid4() for _ in range(1_001)], actor)
