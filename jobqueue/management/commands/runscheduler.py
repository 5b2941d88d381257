"""``manage.py runscheduler``: promote what is due, sweep, prune; in any number."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from jobqueue.management.commands.runworker import add_logging, usable_options, wait_for_schema
from jobqueue.runtime.logs import configure
from jobqueue.runtime.scheduler import Scheduler
from jobqueue.runtime.service import run_service


class Command(BaseCommand):
    """Run a scheduler until told to stop."""

    help = "Promote due jobs, park and admit unknown tasks, prune. Any number may run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--backend", default="default", help="alias in TASKS")
        parser.add_argument("--wait-for-migrations", action="store_true")
        add_logging(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        configure(options["log_format"], options["log_level"])
        alias = options["backend"]
        engine_options = usable_options(alias)
        wait_for_schema(engine_options, wait=options["wait_for_migrations"])
        scheduler = Scheduler(alias, engine_options)
        run_service("scheduler", scheduler.run_once, engine_options.poll_seconds, scheduler.reset)
