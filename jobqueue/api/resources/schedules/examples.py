"""The schedule that the document shows."""

from __future__ import annotations

from typing import Any

from jobqueue.api.resources.jobs.examples import JOB_ID

TICK: dict[str, Any] = {
    "tick": "2026-07-14T00:30:00Z",
    "at": "2026-07-14T00:30:00.210000Z",
    "outcome": "enqueued",
    "missed": 0,
    "job_id": JOB_ID,
    "job_state": "succeeded",
}

PREVIEW: dict[str, Any] = {
    "words": "at 02:30",
    "next_ticks": [
        {
            "at": "2026-07-15T00:30:00Z",
            "local": "2026-07-15T02:30:00+02:00",
            "note": "",
        }
    ],
}

NEW: dict[str, Any] = {
    "name": "nightly report",
    "task": "shop.tasks.report",
    "kwargs": {"days": 1},
    "cron": "30 2 * * *",
    "time_zone": "Europe/Berlin",
    "overlap": "skip",
}

SCHEDULE: dict[str, Any] = {
    **PREVIEW,
    "id": 3,
    "name": "nightly report",
    "state": "ticking",
    "late": False,
    "error": "",
    "source": "database",
    "enabled": True,
    "task": "shop.tasks.report",
    "arguments": {"args": [], "kwargs": {"days": 1}},
    "payload_hidden": False,
    "queue_name": "",
    "priority": None,
    "cron": "30 2 * * *",
    "every": None,
    "at": None,
    "time_zone": "Europe/Berlin",
    "start": None,
    "end": None,
    "missed": "once",
    "missed_limit": 100,
    "overlap": "skip",
    "jitter": 0,
    "last": TICK,
    "version": 1,
    "allowed_actions": [
        "update_schedule",
        "disable_schedule",
        "delete_schedule",
        "run_schedule",
    ],
}
