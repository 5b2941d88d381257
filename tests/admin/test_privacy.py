"""What a question tells: whoever may not see a payload learns nothing of it by asking, either."""

import pytest
from django.contrib import admin as django_admin
from django.contrib.admin import ModelAdmin
from django.db.models import Model

from jobqueue.admin.base import OperationsAdmin
from jobqueue.models import BulkOperation
from tests.admin.making import everything, job, page

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
