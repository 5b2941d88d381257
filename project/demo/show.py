"""The inner process: from migrations to the verdict, on servers that are already there."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from jobqueue.live.manifest import FOLDER
from project.demo import crew, login
from project.demo.fleet import Fleet
from project.demo.interrupts import interrupted_once
from project.demo.launcher import DIRECTORY
from project.demo.options import AUDIT_FAILED, AUDIT_PASSED, DemoError, DemoOptions
from project.demo.plan import Plan
from project.demo.progress import Progress
from project.demo.report import Report
from project.demo.run import TICK_SECONDS, Run
from project.demo.sweep import TOKEN, sweep
from project.demo.table import print_report

MIGRATE_SECONDS = 120.0
PLAIN_COLUMNS = 100
"""Width of the table where there is no terminal to ask for its own."""


def show(options: DemoOptions) -> int:
    """Run the demo on the servers of the environment; return 0 if the audit found nothing."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PLAIN_COLUMNS)
    directory = Path(os.environ[DIRECTORY])
    launcher = os.getppid()
    try:
        with interrupted_once():
            return run_and_stay(console, directory, Plan(options=options))
    finally:
        sweep(os.environ[TOKEN])
        if os.getppid() != launcher:
            shutil.rmtree(directory, ignore_errors=True)  # nobody else is left to do it


def run_and_stay(console: Console, directory: Path, plan: Plan) -> int:
    """Run, report and, on a terminal, stay up."""
    console.print("Migrating …")
    migrate(directory)
    password, token = login.create_superuser(), login.create_token()
    checkpoints = directory / "checkpoints"
    checkpoints.mkdir()
    with starting_crew(directory, plan, checkpoints) as (fleet, web_port):
        if console.is_terminal:
            login_line = f"login {login.USERNAME}, password {password}"
            console.print(f"{where_to_watch(web_port)}  ({login_line})", markup=False)
        with Progress(console) as progress:
            run = Run(plan, fleet, progress, web_port=web_port, checkpoints=checkpoints)
            progress.say("Starting web, gateway, workers, scheduler and reaper …")
            run.wait_until_ready()
            run.attack()
            report: Report = run.report()
        print_report(console, report)
        if sys.stdin.isatty() and console.is_terminal:
            stay_up(console, fleet, web_port, password, token)
    return AUDIT_FAILED if report.violations else AUDIT_PASSED


@contextmanager
def starting_crew(directory: Path, plan: Plan, checkpoints: Path) -> Iterator[tuple[Fleet, int]]:
    """Start all processes; yield the fleet and the web server's port; stop them at the end."""
    with crew.loopback_socket() as gateway, crew.loopback_socket() as web:
        environment = os.environ | {
            "GATEWAY_URL": f"http://127.0.0.1:{gateway.getsockname()[1]}",
            "CHECKPOINT_DIR": str(checkpoints),
        }
        with Fleet(directory, environment) as fleet:
            crew.start_gateway(fleet, gateway, seed=plan.options.seed)
            crew.start_web(fleet, web)
            crew.start_workers(fleet)
            yield fleet, web.getsockname()[1]


def migrate(directory: Path) -> None:
    """Bring the database's schema up to date. Raise DemoError, with its words, if that fails."""
    log = directory / "migrate.log"
    with log.open("wb") as output:
        code = subprocess.run(
            crew.manage("migrate", "--no-input"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=MIGRATE_SECONDS,
        ).returncode
    if code:
        lines = log.read_text(errors="replace").splitlines()
        raise DemoError("The database could not be migrated:\n" + "\n".join(lines[-20:]))


def where_to_watch(web_port: int) -> str:
    """Return where the live page is, and what to do if it was not built."""
    built = "" if (FOLDER / "manifest.json").exists() else " (not built yet: make page)"
    return f"Watch it live: http://127.0.0.1:{web_port}/jobqueue/?period=15m{built}"


def stay_up(console: Console, fleet: Fleet, web_port: int, password: str, token: str) -> None:
    """Print where to look, and keep everything running until Ctrl-C."""
    site = f"http://127.0.0.1:{web_port}"
    console.print(f"\nShop:  {site}/shop/\nAdmin: {site}/admin/\nLive:  {site}/jobqueue/")
    console.print(f"API:   {site}/jobqueue/api/v1/docs/ (sign in first)")
    console.print(f"Login: {login.USERNAME}, password {password}", markup=False)
    console.print("For curl, as in README.md:")
    print(f"API={site}/jobqueue/api/v1\nTOKEN={token}", flush=True)  # short, and never wrapped
    console.print("Workers go on. Ctrl-C stops everything.")
    try:
        while True:
            fleet.tend()
            time.sleep(TICK_SECONDS)
    except KeyboardInterrupt:
        console.print("Stopping …")
