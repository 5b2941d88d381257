"""``manage.py runreaper``: notice dead workers and give their jobs a way on; in any number."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from jobqueue.management.commands.runworker import add_logging, usable_options, wait_for_schema
from jobqueue.runtime.logs import configure
from jobqueue.runtime.reaper import LOOK_SECONDS, Reaper
from jobqueue.runtime.service import run_service


class Command(BaseCommand):
    """Run a reaper until told to stop."""

    help = "Notice dead workers and overdue jobs, and give the jobs a way on. Any number may run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--backend", default="default", help="alias in TASKS")
        parser.add_argument("--wait-for-migrations", action="store_true")
        add_logging(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        configure(options["log_format"], options["log_level"])
        engine_options = usable_options(options["backend"])
        wait_for_schema(engine_options, wait=options["wait_for_migrations"])
        reaper = Reaper(engine_options)
        run_service("reaper", reaper.run_once, LOOK_SECONDS, reaper.reset)
