"""What a question tells: whoever may not see a payload learns nothing of it by asking, either."""

import pytest
from django.apps import apps
from django.contrib import admin as django_admin
from django.contrib.admin import ModelAdmin
from django.db.models import Model

from jobqueue.admin.base import OperationsAdmin
from jobqueue.models import (
    Action,
    Attempt,
    BulkOperation,
    ErrorGroup,
    Job,
    LogLine,
    Progress,
    Schedule,
    Step,
)
from tests.admin.making import FINGERPRINT, everything, job, page

pytestmark = pytest.mark.django_db

OURS = {
    model._meta.model_name: found
    for model, found in django_admin.site._registry.items()
    if model._meta.app_label == "jobqueue"
}
PAYLOAD = (
    "arguments", "result", "error_message", "traceback", "message", "unique_key", "limit_key",
    "trace_context", "filter", "detail",
)  # fmt: skip
VIEWS = ("view_job", "view_attempt", "view_action", "view_bulkoperation", "view_errorgroup",
         "view_jobtag", "view_limit", "view_queue", "view_schedule", "view_worker")  # fmt: skip


def columns_of(model: type[Model]) -> set[str]:
    return {field.name for field in model._meta.concrete_fields}


# --- columns in the query string ------------------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
def test_no_column_is_compared_but_by_the_filters_that_are_drawn(name, as_staff):
    everything()
    client = as_staff(*VIEWS)
    site = OURS[name]
    assert isinstance(site, OperationsAdmin)
    for column in sorted({*PAYLOAD, *columns_of(site.model)}):
        lookup = f"{column}__contains"
        assert not site.lookup_allowed(lookup, "x", None)
        if lookup in columns_compared_by_lists(site):
            assert client.get(page(name), {lookup: "x"}).status_code == 400, lookup


def columns_compared_by_lists(site: ModelAdmin) -> set[str]:
    """Return lookups that Django's list would compare; lists of our own ask the database theirs."""
    if type(site).changelist_view is not OperationsAdmin.changelist_view:
        return set()
    return {f"{name}__contains" for name in {*PAYLOAD, *columns_of(site.model)}}


def test_drawn_filters_still_narrow_each_list(as_staff):
    everything()
    client = as_staff(*VIEWS)
    for name, site in OURS.items():
        for drawn in site.list_filter:
            answer = client.get(page(name), {drawn.parameter_name: "1"})
            assert answer.status_code == 200, (name, drawn)


# --- filters --------------------------------------------------------------------------------------

PROBES = ("args.0:42", "message:order", '-message:"no such"', '"no such order"', "-order")
SECRETS = ("args.password:hunter2", "args.card.pin:1234")
ASKED = {"list": (page("job"), "q"), "dead letters": (page("deadletter"), "q"),
         "bulk": (page("job", "matching", "requeue"), "filter")}  # fmt: skip


def ask(client, where, text, method="get"):
    """Ask for jobs by a filter on one of the pages that take one; return the text of the answer."""
    address, name = ASKED[where]
    return getattr(client, method)(address, {name: text}, follow=True).text


@pytest.mark.parametrize("where", ASKED)
@pytest.mark.parametrize("probe", PROBES)
def test_payloads_are_searched_by_whoever_may_see_them_alone(where, probe, as_staff):
    subject = job("dead")
    client = as_staff("view_job", "requeue_job")
    text = ask(client, where, probe)
    assert "so you cannot search in them" in text
    assert where == "bulk" or str(subject.pk) not in text
    if where == "bulk":
        ask(client, where, probe, "post")
        assert not BulkOperation.objects.exists()


@pytest.mark.parametrize("where", ASKED)
@pytest.mark.parametrize("probe", SECRETS)
def test_nobody_searches_by_what_is_shown_to_nobody(where, probe, as_staff):
    subject = job("dead")
    text = ask(as_staff("view_job", "requeue_job", "view_job_payload"), where, probe)
    assert "is kept secret" in text
    assert where == "bulk" or str(subject.pk) not in text


def test_an_id_finds_its_job_and_nothing_that_mentions_it(as_staff):
    subject = job("ready")
    told = job("dead", error_message=f"waits for {subject.pk}")
    text = ask(as_staff("view_job"), "list", str(subject.pk))
    assert page("job", subject.pk) in text
    assert page("job", told.pk) not in text


# --- what is told ---------------------------------------------------------------------------------

TOLD = {
    "unique_key": "unique hunter2", "unique_until": "done", "limit_key": "limit hunter2",
    "error_message": "no order 'hunter2'\nDETAIL: hunter2",
}  # fmt: skip


def everything_tells() -> Job:
    """Store a row of every model, each with a secret wherever arguments and errors leave one."""
    keys = everything()
    subject = Job.objects.get(pk=keys["job"])
    for model in (Attempt, ErrorGroup):
        model.objects.update(**{
            field: TOLD["error_message"]
            for field in ("error_message", "message", "traceback")
            if field in columns_of(model)
        })  # fmt: skip
    Job.objects.filter(pk=subject.pk).update(arguments={"args": ["hunter2"], "kwargs": {}}, **TOLD)
    Progress.objects.update(message="at hunter2")
    LogLine.objects.update(message="did hunter2")
    Step.objects.update(result="hunter2")
    Schedule.objects.update(
        arguments={"args": ["hunter2"], "kwargs": {}}, error="ValueError: 'hunter2'"
    )
    BulkOperation.objects.update(
        filter="args.name:hunter2", error="DataError: no 'hunter2'\nDETAIL: hunter2"
    )
    Action.objects.update(detail={"filter": "args.name:hunter2"})
    return subject


def pages_of(subject: Job) -> list[str]:
    """Return the addresses of all lists and rows, with the ways that Django offers around them."""
    keys = {"job": subject.pk, "deadletter": subject.pk, "errorgroup": FINGERPRINT,
            "queue": "default", "limit": "customer"}  # fmt: skip
    for name, site in OURS.items():
        keys.setdefault(name, site.model.objects.values_list("pk", flat=True).first())
    found = ["/admin/", "/admin/jobqueue/"]
    for name, key in keys.items():
        ways = ("", "?o=1.-2.3", "?_popup=1", "?_facets=True", "?all=1", "?state=any")
        found += [page(name) + way for way in ways]
        found += [page(name, key), page(name, key, "history"), page(name, key) + "?_popup=1"]
    return found


def texts_for(client) -> dict[str, str]:
    subject = everything_tells()
    found = {url: client.get(url, follow=True).text for url in pages_of(subject)}
    for model in ("job", "deadletter"):
        chosen = {"action": "export_selected", "_selected_action": [subject.pk], "index": "0"}
        found[f"{model} as CSV"] = client.post(page(model), chosen).text
        assert str(subject.pk) in found[f"{model} as CSV"]
    return found


def test_no_page_tells_a_payload_to_whoever_may_not_see_it(as_staff):
    found = texts_for(as_staff(*VIEWS, "requeue_job", "enqueue_job", "change_schedule"))
    assert [where for where, text in found.items() if "hunter2" in text] == []
    assert "no order" in found[page("job") + "?state=any"], "what it is about is told all the same"


def test_whoever_may_see_payloads_is_told(as_staff):
    found = texts_for(as_staff(*VIEWS, "view_job_payload"))
    told = {where for where, text in found.items() if "hunter2" in text}
    lists = (page("job") + "?state=any", page("attempt"), page("bulkoperation"))
    assert told >= {"job as CSV", *lists}


@pytest.mark.parametrize("column", ["traceback", "error_message", "arguments", "unique_key"])
def test_a_popup_refers_to_no_column_that_is_hidden(column, as_staff):
    everything_tells()
    client = as_staff(*VIEWS)
    for name, site in OURS.items():
        if type(site).changelist_view is OperationsAdmin.changelist_view:
            assert client.get(page(name), {"_popup": "1", "_to_field": column}).status_code == 400


def test_nothing_of_ours_is_offered_for_completion(as_staff):
    client = as_staff(*set(VIEWS) - {"view_schedule"})  # ticks refer to schedules, by their names
    for model in apps.get_app_config("jobqueue").get_models():
        for field in columns_of(model):
            asked = {"app_label": "jobqueue", "model_name": model._meta.model_name,
                     "field_name": field, "term": "hunter2"}  # fmt: skip
            assert client.get("/admin/autocomplete/", asked).status_code in (403, 404)
