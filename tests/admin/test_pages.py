"""Every page opens, with few queries, for whoever may see it."""

import pytest

from tests.admin.making import everything, page

pytestmark = pytest.mark.django_db

MODELS = (
    "job", "deadletter", "errorgroup", "queue", "worker", "schedule", "limit", "bulkoperation",
    "action", "attempt", "jobtag",
)  # fmt: skip
MAX_QUERIES = 10


@pytest.mark.parametrize("model", MODELS)
def test_a_list_opens_with_few_queries(admin, model, django_assert_max_num_queries):
    everything()
    with django_assert_max_num_queries(MAX_QUERIES):
        response = admin.get(page(model))
    assert response.status_code == 200


@pytest.mark.parametrize(
    "model",
    [
        "job",
        "attempt",
        "errorgroup",
        "queue",
        "limit",
        "schedule",
        "bulkoperation",
        "worker",
        "action",
    ],
)
def test_a_page_opens_with_few_queries(admin, model, django_assert_max_num_queries):
    key = everything()[model]
    with django_assert_max_num_queries(MAX_QUERIES):
        response = admin.get(page(model, key))
    assert response.status_code == 200


def test_the_overview_opens(admin):
    everything()
    response = admin.get("/admin/jobqueue/")
    assert response.status_code == 200
    assert "What is wrong now" in response.text
