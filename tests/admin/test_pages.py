"""Every page opens, with few queries, for whoever may see it."""

import subprocess
import sys

import pytest
from django.db import connection

from tests.admin.making import everything, page
from tests.conftest import CHECKOUT

pytestmark = pytest.mark.django_db

MODELS = (
    "job", "deadletter", "errorgroup", "queue", "worker", "schedule", "limit", "bulkoperation",
    "action", "attempt", "jobtag",
)  # fmt: skip
MAX_QUERIES = 10 + 3 * (connection.vendor == "sqlite")
"""SQLite is asked for the time twice, and where its file is, in statements of their own."""


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


WITHOUT_ADMIN = """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["jobqueue"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
)
django.setup()
from django.template import engines
assert engines["django"].from_string("{{ word }}").render({"word": "fine"}) == "fine"
import sys
assert "jobqueue.admin" not in sys.modules
"""


def test_a_project_without_the_admin_has_templates_all_the_same():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ADMIN], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2_000:]


def test_the_overview_opens(admin):
    everything()
    response = admin.get("/admin/jobqueue/")
    assert response.status_code == 200
    assert "What is wrong now" in response.text
