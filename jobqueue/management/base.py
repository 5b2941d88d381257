"""What the commands that run until told to stop share: options, checks, waiting for the schema."""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError, SystemCheckError
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from jobqueue.compat import task_backends
from jobqueue.conf import Options, options_for
from jobqueue.events import emit
from jobqueue.exceptions import InvalidOptions
from jobqueue.management.endings import QuietCommand
from jobqueue.runtime.exit_codes import CLEAN, MISCONFIGURED
from jobqueue.runtime.logs import configure
from jobqueue.runtime.shutdown import SignalBox
from jobqueue.tasks import autodiscover

SCHEMA_LOOK_SECONDS = 1.0


class ServiceCommand(QuietCommand):
    """A command that runs until told to stop; `start` is what it does.

    Its system checks include those of its database: what a durability setting would lose is
    said before the first job runs.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--backend", default="default", help="alias in TASKS (default: default)")
        add("--wait-for-migrations", action="store_true", help="wait until migrate has run")
        add(
            "--log-format",
            choices=("auto", "text", "json"),
            default="auto",
            help="auto: text on a terminal, else JSON lines",
        )
        add("--log-level", default="info", choices=("debug", "info", "warning", "error"))

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        """Let the checks of the alias' database run, too, if it can be known and answers."""
        alias = options["backend"]
        try:
            database = options_for(alias).database
            connections[database].ensure_connection()
        except Exception:
            return {}  # said with a message of its own when the command starts
        return {"databases": [database]}

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Run the checks; what they refuse ends the command like any unusable setting."""
        try:
            super().check(*args, **kwargs)
        except SystemCheckError as error:
            error.returncode = MISCONFIGURED
            raise

    def handle(self, *args: Any, **options: Any) -> None:
        configure(options["log_format"], options["log_level"])
        engine_options = usable_options(options["backend"])
        wait_for_schema(engine_options, wait=options["wait_for_migrations"])
        self.start(engine_options, options)

    def start(self, engine_options: Options, options: dict[str, Any]) -> None:
        """Run until told to stop."""
        raise NotImplementedError


def usable_options(alias: str) -> Options:
    """Return the alias' options; raise CommandError that says what is wrong with them."""
    try:
        backend = task_backends[alias]
        if not getattr(backend, "is_jobqueue", False):
            raise misconfigured(f"TASKS[{alias!r}] does not use jobqueue's backend.")
        return options_for(alias)
    except CommandError:
        raise
    except InvalidOptions as error:
        raise misconfigured(str(error)) from error
    except Exception as error:
        raise misconfigured(f"TASKS[{alias!r}] cannot be used: {error}") from error


def discover_tasks(options: Options) -> None:
    """Import the modules with tasks; end the process, with the code for settings, if one fails."""
    try:
        autodiscover(options)
    except Exception:
        logging.getLogger("jobqueue").exception("A module with tasks cannot be imported")
        sys.exit(MISCONFIGURED)


def misconfigured(message: str) -> CommandError:
    """Return the error that ends a command with the exit code for unusable settings."""
    return CommandError(message, returncode=MISCONFIGURED)


def wait_for_schema(options: Options, *, wait: bool) -> None:
    """Raise CommandError unless the schema is that of this version; or wait for it.

    A signal ends the waiting, also for the first process of a container, which nothing else would.
    """
    connection = connections[options.database]
    problem = _schema_problem(connection)
    if not problem:
        return
    if not wait:
        raise CommandError(problem)
    emit("schema.waiting", level=logging.WARNING, why=problem)
    box = SignalBox()
    try:
        while _schema_problem(connection):
            if box.wait(SCHEMA_LOOK_SECONDS):
                sys.exit(CLEAN)
    finally:
        box.close()
    emit("schema.ready")


def _schema_problem(connection: BaseDatabaseWrapper) -> str:
    """Return why nothing can be started on this schema, "" if everything can."""
    try:
        executor = MigrationExecutor(connection)
        leaves = [node for node in executor.loader.graph.leaf_nodes() if node[0] == "jobqueue"]
        pending = executor.migration_plan(leaves)
    except OperationalError as error:
        connection.close()
        return f"The database does not answer: {str(error).strip()}"
    if pending:
        return "The migrations of jobqueue have not been applied: run `manage.py migrate`."
    return ""
