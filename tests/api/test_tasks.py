"""What callers are told that they may enqueue."""

from django.contrib.auth import get_user_model
from django.test import Client

from jobqueue.models import Action
from tests.api.conftest import PREFIX
from tests.api.tasks import CHARGE, for_staff, hidden


def test_exposed_tasks_are_listed_with_a_schema_of_their_arguments(make_caller):
    tasks = {t["name"]: t for t in make_caller("kim", "enqueue_job").get("/tasks/").json()["tasks"]}
    found = tasks[CHARGE]
    assert found["queue_name"] == "mail"
    assert found["description"] == "Take the money for an order."
    assert found["kwargs"]["required"] == ["order_id"]
    assert found["kwargs"]["properties"]["order_id"] == {"type": "integer"}
    assert hidden.module_path not in tasks


def test_nothing_is_offered_to_who_may_not_enqueue(make_caller):
    assert make_caller("kim", "view_job").get("/tasks/").json() == {"tasks": []}


def test_staff_in_a_browser_are_offered_what_is_exposed_to_staff(db):
    user = get_user_model().objects.create_superuser("kim", password="secret")
    client = Client()
    client.force_login(user)
    names = {t["name"] for t in client.get(PREFIX + "/tasks/").json()["tasks"]}
    assert (for_staff.module_path in names, CHARGE in names) == (True, False)
    body = {"task": for_staff.module_path}
    answer = client.post(PREFIX + "/jobs/", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    assert Action.objects.get().surface == "page"
