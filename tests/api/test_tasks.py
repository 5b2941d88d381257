"""What callers are told that they may enqueue."""

from tests.api.tasks import CHARGE, hidden


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
