"""Who may do what: one list behind admin, API and page. A shell may do everything.

    if permissions.may(request.user, "requeue"): ...

`PERMISSION_OF` maps each action, by its name in `jobqueue.control`, to a permission of Django's;
those beyond Django's own four are declared in the models. A bulk operation needs the permission
of its verb, to start, stop and resume it.

What it does not decide: which tasks may be enqueued (the task does, by ``expose``), and which
jobs a user may see. Whoever may see jobs sees all of them; an API narrows that by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VIEW, VIEW_PAYLOAD = "view", "view_payload"
MAX_USER_NAME_LENGTH = 150
"""Of a user's name in `created_by` and in actions; Django's own users have no longer ones."""

PERMISSION_OF: Mapping[str, str] = {
    VIEW: "jobqueue.view_job",
    VIEW_PAYLOAD: "jobqueue.view_job_payload",
    "requeue": "jobqueue.requeue_job",
    "cancel": "jobqueue.cancel_job",
    "discard": "jobqueue.discard_job",
    "reschedule": "jobqueue.reprioritize_job",
    "run_now": "jobqueue.reprioritize_job",
    "reprioritize": "jobqueue.reprioritize_job",
    "move": "jobqueue.reprioritize_job",
    "enqueue": "jobqueue.enqueue_job",
    "submit": "jobqueue.enqueue_job",
    "run_again": "jobqueue.enqueue_job",
    "prune": "jobqueue.delete_job",
    "pause": "jobqueue.pause_queue",
    "resume": "jobqueue.pause_queue",
    "set_limit": "jobqueue.change_limit",
    "lift_limit": "jobqueue.change_limit",
    "reset_limit": "jobqueue.change_limit",
    "drain_worker": "jobqueue.drain_worker",
    "create_schedule": "jobqueue.add_schedule",
    "update_schedule": "jobqueue.change_schedule",
    "enable_schedule": "jobqueue.change_schedule",
    "disable_schedule": "jobqueue.change_schedule",
    "delete_schedule": "jobqueue.delete_schedule",
    "run_schedule": "jobqueue.run_schedule",
}
"""What is hidden from who may view a job and not its payload is said in `jobqueue.disclosure`."""


def permission_for(action: str) -> str:
    """Return the permission that `action` needs. Raise KeyError for what is no action."""
    return PERMISSION_OF[action]


def may(user: Any, action: str) -> bool:
    """Return whether `user` may do `action`."""
    return bool(user.is_active and user.has_perm(PERMISSION_OF[action]))


def allowed(user: Any) -> frozenset[str]:
    """Return all that `user` may do."""
    return frozenset(action for action in PERMISSION_OF if may(user, action))


def owner_name(user: Any) -> str:
    """Return what `created_by` says of the jobs that `user` has made over the API or the page.

    The name with the key of the user, so that neither a name that is given to somebody else later
    nor the name of a user of the operating system (whose jobs were enqueued in a shell) makes
    anybody the owner of a job that is not theirs.
    """
    name = str(user.get_username()).replace("\x00", "")[:MAX_USER_NAME_LENGTH] or "unnamed"
    return f"{name}#{user.pk}"[:255]
