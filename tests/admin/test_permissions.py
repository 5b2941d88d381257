"""User × permission × action × state: nothing is reachable that is not granted, nothing by GET.

The matrix is made of the one list of permissions and of what control allows in each state; the
admin has to agree with both.
"""

from collections.abc import Iterator

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from jobqueue import control
from jobqueue.models import Action, BulkOperation, Job, Limit, Queue, Schedule, Worker
from jobqueue.permissions import PERMISSION_OF
from jobqueue.states import State
from tests.admin.making import attempt, everything, job, page, staff

pytestmark = pytest.mark.django_db

GIVEN = {
    "reschedule": {"run_at": "2030-01-01T00:00"},
    "reprioritize": {"priority": "5"},
    "move": {"queue": "mail"},
}
VERBS = tuple(verb for verb in control.ACTIONS if verb != "run_again")


def codename(verb: str) -> str:
    return PERMISSION_OF[verb].partition(".")[2]


def looks() -> list:
    """Return all rows that an action could have changed."""
    models = (Job, Queue, Worker, Schedule, Limit, BulkOperation, Action)
    return [list(model.objects.order_by("pk").values()) for model in models]


# --- one job --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_an_action_on_a_job_needs_its_permission_and_its_state(verb, as_staff):
    granted, viewer = as_staff("view_job", codename(verb)), Client()
    viewer.force_login(staff("sam", "view_job"))
    for state in State:
        subject = job(state)
        url = page("job", subject.pk, "do", verb)
        before = looks()
        assert viewer.post(url, GIVEN.get(verb, {})).status_code == 403
        assert granted.get(url).status_code == 405
        assert looks() == before, "neither a refused POST nor a GET changes anything"
        assert granted.post(url, GIVEN.get(verb, {})).status_code == 302
        is_changed = Job.objects.get(pk=subject.pk).version > subject.version
        may_be = state in control.ACTIONS[verb]
        asked = verb == "cancel" and state == State.RUNNING  # a request, not a write to the row
        assert is_changed == (may_be and not asked)
        assert Action.objects.filter(job_id=subject.pk, surface="admin").exists() == may_be
        assert LogEntry.objects.filter(object_id=str(subject.pk)).exists() == may_be


@pytest.mark.parametrize("verb", VERBS)
def test_buttons_are_those_that_are_granted_and_allowed(verb, as_staff):
    client = as_staff("view_job", codename(verb))
    alike = {other for other in VERBS if codename(other) == codename(verb)}
    for state in State:
        subject = job(state)
        text = client.get(page("job", subject.pk)).text
        offered = {other for other in VERBS if page("job", subject.pk, "do", other) in text}
        assert offered == {other for other in alike if state in control.ACTIONS[other]}


def test_without_view_permission_no_action_is_possible(as_staff):
    client = as_staff(*{codename(verb) for verb in VERBS})
    subject = job("dead")
    assert client.get(page("job")).status_code == 403
    assert client.get(page("job", subject.pk)).status_code == 403
    assert client.post(page("job", subject.pk, "do", "requeue")).status_code == 403


def test_csrf_is_asked_of_every_action(as_staff):
    client = as_staff("view_job", "requeue_job", enforce_csrf_checks=True)
    subject = job("dead")
    for address in (
        page("job", subject.pk, "do", "requeue"),
        page("job", "selected", "cancel"),
        page("job", "matching", "requeue"),
    ):
        assert client.post(address, {"filter": "state:dead"}).status_code == 403
    assert Job.objects.get(pk=subject.pk).state == "dead"


# --- ticked, and all that match -------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_actions_of_the_list_are_those_that_are_granted(verb, as_staff):
    job("dead"), job("ready")
    client = as_staff("view_job", codename(verb))
    text = client.get(page("job")).text
    offered = {other for other in VERBS if f'value="{other}_selected"' in text}
    assert offered == {other for other in VERBS if codename(other) == codename(verb)}


@pytest.mark.parametrize("verb", VERBS)
def test_ticked_jobs_are_changed_by_whoever_may(verb, as_staff):
    subject = job(min(control.ACTIONS[verb]))
    chosen = {"action": f"{verb}_selected", "_selected_action": [subject.pk], "index": "0"}
    as_viewer = Client()
    as_viewer.force_login(staff("sam", "view_job", "view_job_payload"))
    before = looks()
    as_viewer.post(page("job"), chosen)
    as_viewer.post(page("job", "selected", verb), {"_selected_action": [subject.pk]})
    assert looks() == before
    client = as_staff("view_job", codename(verb))
    answer = client.post(page("job"), chosen)
    if answer.status_code == 200:  # it asks for what it needs, or once more
        assert looks() == before
        data = {"_selected_action": [subject.pk], **GIVEN.get(verb, {})}
        answer = client.post(page("job", "selected", verb), data)
    assert answer.status_code == 302
    assert Job.objects.get(pk=subject.pk).version > subject.version


@pytest.mark.parametrize("verb", VERBS)
def test_a_bulk_operation_needs_the_permission_of_its_verb(verb, as_staff):
    job(min(control.ACTIONS[verb]))
    url = page("job", "matching", verb)
    chosen = {"filter": "state:any", **GIVEN.get(verb, {})}
    viewer = Client()
    viewer.force_login(staff("sam", "view_job"))
    assert viewer.get(url, chosen).status_code == 403
    assert viewer.post(url, chosen).status_code == 403
    client = as_staff("view_job", codename(verb))
    assert "1 job" in client.get(url, chosen).text
    assert not BulkOperation.objects.exists(), "a look begins nothing"
    assert client.post(url, chosen).status_code == 302
    operation = BulkOperation.objects.get()
    assert (operation.verb, operation.actor, operation.surface) == (verb, "kim", "admin")
    turn = page("bulkoperation", operation.pk, "turn", "stop")
    assert viewer.post(turn).status_code == 403
    assert client.get(turn).status_code == 405
    client.post(turn)
    operation.refresh_from_db()
    assert operation.state == "stopped"


# --- the others -----------------------------------------------------------------------------------

OTHERS = {
    ("queue", "mail", "turn/resume"): ("resume", "view_queue"),
    ("queue", "default", "turn/pause"): ("pause", "view_queue"),
    ("limit", "customer", "turn/lift"): ("lift_limit", "view_limit"),
    ("limit", "customer", "turn/reset"): ("reset_limit", "view_limit"),
    ("worker", None, "drain"): ("drain_worker", "view_worker"),
    ("schedule", None, "turn/disable"): ("disable_schedule", "view_schedule"),
    ("schedule", None, "turn/run"): ("run_schedule", "view_schedule"),
}


@pytest.mark.parametrize(("where", "needed"), OTHERS.items(), ids=lambda v: "-".join(map(str, v)))
def test_what_is_done_to_others_needs_its_permission_too(where, needed, as_staff):
    model, key, rest = where
    verb, view = needed
    keys = everything()
    url = page(model, key or keys[model], rest)
    before = looks()
    viewer = Client()
    viewer.force_login(staff("sam", view, "view_job"))
    assert viewer.post(url).status_code == 403
    client = as_staff(view, codename(verb))
    assert client.get(url).status_code == 405
    assert looks() == before
    assert client.post(url, {"reason": "mails are stuck"}).status_code == 302
    assert looks() != before
    assert Action.objects.filter(actor="kim", surface="admin").count() == 1
    assert LogEntry.objects.count() == 1


def test_viewing_one_thing_shows_no_other(as_staff):
    keys = everything()
    client = as_staff("view_queue")
    assert client.get(page("queue")).status_code == 200
    for model in set(keys) - {"queue"}:
        assert client.get(page(model)).status_code == 403
        assert client.get(page(model, keys[model])).status_code == 403


# --- every address --------------------------------------------------------------------------------


def addresses() -> Iterator[str]:
    """Return every address of ours, filled in with keys that exist."""
    keys = everything()
    attempt(job("cancelled"))
    keys["deadletter"] = keys["job"]
    for model, key in keys.items():
        yield page(model)
        yield page(model, key)
        yield page(model, key, "delete")
        yield page(model, key, "history")
        yield page(model, "add")
    yield from (page("job", keys["job"], "do", verb) for verb in control.ACTIONS)
    yield from (page("job", "selected", verb) for verb in control.ACTIONS)
    yield from (page("job", "matching", verb) for verb in control.ACTIONS)
    yield page("job", "submit")
    yield page("worker", keys["worker"], "drain")
    yield from (page("queue", "mail", "turn", turn) for turn in ("pause", "resume"))
    yield from (page("limit", "customer", "turn", turn) for turn in ("set", "lift", "reset"))
    yield from (
        page("schedule", keys["schedule"], "turn", turn)
        for turn in ("enable", "disable", "run", "delete")
    )
    yield from (
        page("bulkoperation", keys["bulkoperation"], "turn", turn) for turn in ("stop", "resume")
    )


def test_by_get_nothing_changes_at_all(admin):
    found = list(addresses())
    before = looks()
    for address in found:
        answer = admin.get(address, {"filter": "state:any", "verb": "requeue"})
        assert answer.status_code < 500, address
    assert looks() == before
    assert not LogEntry.objects.exists()


def test_who_is_no_staff_reaches_nothing(client, django_user_model):
    found = list(addresses())
    client.force_login(django_user_model.objects.create_user("visitor"))
    before = looks()
    for address in found:
        for answer in (client.get(address), client.post(address)):
            assert answer.status_code == 302, address
            assert answer.url.startswith("/admin/login/")
    assert looks() == before


def test_jobs_are_neither_added_edited_nor_deleted_by_hand(admin):
    subject = job("ready")
    assert admin.get(page("job", "add")).status_code == 403
    assert admin.post(page("job", subject.pk), {"state": "dead"}).status_code == 200
    assert admin.post(page("job", subject.pk, "delete"), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [subject.pk], "index": "0"}
    admin.post(page("job"), chosen)
    assert Job.objects.get().version == subject.version
