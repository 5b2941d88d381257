"""One list of permissions, and nothing that an operator may do is missing from it."""

import inspect

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User

from jobqueue import control, permissions
from jobqueue.engine.bulk_plan import BULK_VERBS

pytestmark = pytest.mark.django_db

READING = {
    "status",
    "schedules",
    "require_change",
    "allowed_actions",
    "bulk_preview",
    "bulk_operation",
    "bulk_operations",
    "check_schedule",
    "preview_schedule",
    "limits",
    "findings",
    "notices",
    "problems",
    "request_key",
    "queues",
    "known_queues",
    "has_live_jobs",
    "workers",
    "readiness",
    "job_page",
    "exposed_tasks",
    "schema_of",
}
OF_THEIR_VERB = {
    "bulk_start",
    "bulk_stop",
    "bulk_resume",
    "bulk_step",
    "edit_job",
    "edit_queue",
    "run_schedule_once",
}


def test_every_function_that_changes_something_has_a_permission():
    functions = {n for n in control.__all__ if inspect.isfunction(getattr(control, n))}
    assert functions - READING - OF_THEIR_VERB <= set(permissions.PERMISSION_OF)
    assert set(BULK_VERBS) <= set(permissions.PERMISSION_OF)


@pytest.mark.parametrize("name", sorted(set(permissions.PERMISSION_OF.values())))
def test_every_permission_can_be_granted(name):
    app, codename = name.split(".")
    assert Permission.objects.filter(content_type__app_label=app, codename=codename).count() == 1


def test_user_may_do_what_was_granted_and_no_more():
    user = User.objects.create_user("kim")
    user.user_permissions.add(
        *Permission.objects.filter(codename__in=["view_job", "reprioritize_job"])
    )
    expected = {"view", "reschedule", "run_now", "reprioritize", "move"}
    assert permissions.allowed(user) == expected
    assert permissions.may(user, "move")
    assert not permissions.may(user, "requeue")


def test_viewing_alone_changes_and_reveals_nothing():
    user = User.objects.create_user("kim")
    user.user_permissions.add(Permission.objects.get(codename="view_job"))
    assert permissions.allowed(user) == {"view"}


def test_inactive_and_anonymous_users_may_nothing_and_superusers_all():
    assert permissions.allowed(AnonymousUser()) == set()
    gone = User.objects.create_user("gone", is_active=False, is_superuser=True)
    assert permissions.allowed(gone) == set()
    assert permissions.allowed(User(is_superuser=True)) == set(permissions.PERMISSION_OF)


def test_what_is_no_action_is_an_error():
    assert permissions.permission_for("cancel") == "jobqueue.cancel_job"
    with pytest.raises(KeyError):
        permissions.permission_for("explode")
