"""``manage.py runscheduler``: promote what is due, tick, sweep, prune; in any number."""

from __future__ import annotations

from typing import Any

from jobqueue.conf import Options
from jobqueue.management.base import ServiceCommand, discover_tasks
from jobqueue.runtime.scheduler import Scheduler
from jobqueue.runtime.service import run_service
from jobqueue.storage.connections import is_direct


class Command(ServiceCommand):
    """Run a scheduler until told to stop."""

    help = (
        "Promote due jobs, make those of schedules, park and admit unknown tasks, prune. Any "
        "number may run."
    )

    def start(self, engine_options: Options, options: dict[str, Any]) -> None:
        discover_tasks(engine_options)  # tasks of schedules, and schedules declared beside them
        direct = is_direct(engine_options.database)
        scheduler = Scheduler(options["backend"], engine_options, direct)
        run_service("scheduler", scheduler.run_once, engine_options.poll_seconds, scheduler.reset)
