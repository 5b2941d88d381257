"""``manage.py runreaper``: notice dead workers and give their jobs a way on; in any number."""

from __future__ import annotations

from typing import Any

from jobqueue.conf import Options
from jobqueue.management.base import ServiceCommand
from jobqueue.runtime.reaper import LOOK_SECONDS, Reaper
from jobqueue.runtime.service import run_service
from jobqueue.storage.connections import is_direct


class Command(ServiceCommand):
    """Run a reaper until told to stop."""

    help = "Notice dead workers and overdue jobs, and give the jobs a way on. Any number may run."

    def start(self, engine_options: Options, options: dict[str, Any]) -> None:
        reaper = Reaper(engine_options, is_direct(engine_options.database))
        run_service("reaper", reaper.run_once, LOOK_SECONDS, reaper.reset)
