"""The job that the document shows, from its enqueue to its end."""

from __future__ import annotations

from typing import Any

JOB_ID = "01980a5d-ac96-774b-8cce-b302099a8057"
OLDER_ID = "01980a5d-a2c1-7d10-9c0e-5b1b6a1d2f33"

SUMMARY: dict[str, Any] = {
    "id": JOB_ID,
    "task": "shop.tasks.send_receipt",
    "queue_name": "mail",
    "priority": 0,
    "state": "dead",
    "reason": "out of attempts",
    "attempts": 5,
    "failures": 5,
    "max_attempts": 5,
    "enqueued_at": "2026-07-14T09:30:00.120000Z",
    "run_at": "2026-07-14T10:51:25.480000Z",
    "started_at": "2026-07-14T10:51:25.490000Z",
    "finished_at": "2026-07-14T10:51:26.010000Z",
    "worker": None,
    "error_class": "smtplib.SMTPServerDisconnected",
    "error_message": "Connection unexpectedly closed",
    "error_fingerprint": "5f1d0c6a9be24d7f8a63f0b7d1c2e394",
    "schedule": "",
    "created_by": "shop#17",
    "tags": ["order:42"],
    "version": 16,
    "allowed_actions": ["discard", "requeue"],
}

DETAIL: dict[str, Any] = {
    **SUMMARY,
    "backend": "default",
    "task_known": True,
    "atomic": False,
    "expires_at": None,
    "deadline": None,
    "timeout": 30.0,
    "on_crash": "retry",
    "suspicions": 0,
    "alone": False,
    "tick": None,
    "copied_from": None,
    "limit_key": None,
    "unique_key": None,
    "arguments": {"args": [42], "kwargs": {}},
    "result": None,
    "payload_hidden": False,
    "payload_unreadable": False,
    "progress": None,
    "cancel_requested": None,
}

CHANGED: dict[str, Any] = {
    **DETAIL,
    "state": "scheduled",
    "reason": "",
    "attempts": 0,
    "failures": 0,
    "priority": 10,
    "run_at": "2026-07-14T12:00:00Z",
    "started_at": None,
    "finished_at": None,
    "error_class": "",
    "error_message": "",
    "error_fingerprint": "",
    "version": 2,
    "allowed_actions": ["cancel", "reschedule", "run_now", "reprioritize", "move"],
}

ASKED: dict[str, Any] = {
    **CHANGED,
    "state": "running",
    "started_at": "2026-07-14T12:00:00.040000Z",
    "worker": "3b0c6f0e-7a53-4c0b-9a67-2f8d5a0d9a11",
    "allowed_actions": ["cancel"],
    "cancel_requested": {
        "reason": "the order was withdrawn",
        "requested_at": "2026-07-14T12:00:07Z",
    },
}
