"""Real processes on a real database: started, watched through their logs, and always ended.

A `Site` is one test's world: a database, a folder, and the programs that it started. Each program
is a session of its own and logs JSON lines to a file that its children share. At the end every
process that inherited the site's token is killed, wherever it ended up: frozen, orphaned, or
forked by a job.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from django.db import connection

from jobqueue.engine.audit import audit, duplicate_effects
from jobqueue.ids import lock_key, session_name
from jobqueue.models import Attempt, Job, Worker
from jobqueue.states import FINISHED, State
from jobqueue.storage import storage_for
from tests.app.models import Effect
from tests.process.folder import Folder
from tests.process.storage import FAULTY
from tests.waiting import wait_until

CHECKOUT = Path(__file__).parent.parent.parent
TOKEN = "TEST_PROCESS_TOKEN"
NOT_INHERITED = {"REDIS_URL", "PYTHONDONTWRITEBYTECODE"}
"""The second would make each of many processes compile Django anew: a second of its start."""


class Program:
    """One command that a test started, and the worker processes that it started in turn."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=CHECKOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def events(self, name: str, **facts: Any) -> list[dict[str, Any]]:
        """Return the events of one name that have these facts, oldest first."""
        wanted = {"event": name, **facts}
        return [line for line in self._lines() if wanted.items() <= line.items()]

    def wait_for(self, name: str, count: int = 1, **facts: Any) -> dict[str, Any]:
        """Wait until an event has happened `count` times; return the last of them."""

        def seen() -> list[dict[str, Any]]:
            events = self.events(name, **facts)
            return events if len(events) >= count else []

        return wait_until(seen, f"{count} × {name} {facts} in {self.log.name}")[-1]

    def workers(self, count: int = 1) -> list[int]:
        """Return the pids of the living worker processes, once there are `count` of them."""

        def living() -> list[int]:
            pids = [event["pid"] for event in self.events("process.started")]
            return [pid for pid in pids if is_running(pid)]

        return wait_until(lambda: p if len(p := living()) >= count else [], "worker processes")

    def send(self, number: int) -> None:
        """Send the program itself a signal."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait for the program's own end; return its exit code."""
        wait_until(lambda: self.process.poll() is not None, f"{self.log.name} to end")
        return self.process.returncode

    def stop(self) -> int:
        """Ask the program to stop; return its exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """SIGKILL the program alone: its worker processes live on."""
        self.process.kill()
        self.process.wait()

    def kill_all(self) -> None:
        """SIGKILL the program and its worker processes, as near to at once as can be.

        The workers first: the end of the program leaves their process groups orphaned, and the
        kernel lets whatever is stopped in such a group go on (SIGHUP, then SIGCONT).
        """
        pids = [self.pid, *self.workers()]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in reversed(pids):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def text(self) -> str:
        """Return everything that was logged."""
        return self.log.read_text(errors="replace")

    def _lines(self) -> list[dict[str, Any]]:
        lines = self.text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]


class Site:
    """One test's database, folder and programs."""

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        self.path = path
        self.folder = Folder(path)
        self.programs: list[Program] = []
        self._token = secrets.token_hex(8)

    # --- processes --------------------------------------------------------------------------------

    def runworker(self, *arguments: str, **changes: Any) -> Program:
        """Start `runworker`; see `start`."""
        return self.start("runworker", *arguments, **changes)

    def start(
        self,
        command: str,
        *arguments: str,
        url: str | None = None,
        environment: Mapping[str, str] | None = None,
        under: Sequence[str] = (),
        **options: Any,
    ) -> Program:
        """Start a management command on this site; `options` are engine options in upper case.

        url: another way to the same database. environment: more variables. under: a command line
        that runs another.
        """
        argv = [str(CHECKOUT / "manage.py"), command, "--log-format", "json", *arguments]
        return self._start(command, argv, url, environment, options, under)

    def enqueuer(
        self, count: int, *, environment: Mapping[str, str] | None = None, **options: Any
    ) -> Program:
        """Start a program that enqueues `count` jobs, one after the other."""
        argv = ["-m", "tests.process.enqueuing", str(count)]
        return self._start("enqueuing", argv, None, environment, options)

    def _start(
        self,
        name: str,
        argv: Sequence[str],
        url: str | None,
        environment: Mapping[str, str] | None,
        options: Mapping[str, Any],
        under: Sequence[str] = (),
    ) -> Program:
        program = Program(
            [*under, sys.executable, *argv],
            self.environment(url or self.url, options) | dict(environment or {}),
            self.path / f"{name}-{len(self.programs)}.log",
        )
        self.programs.append(program)
        return program

    def environment(self, url: str, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables of a process of this site."""
        inherited = {key: value for key, value in os.environ.items() if key not in NOT_INHERITED}
        faulty = {"STORAGE": FAULTY[connection.vendor]}
        return inherited | {
            "DJANGO_SETTINGS_MODULE": "tests.process.settings",
            "TEST_DATABASE_URL": url,
            "TEST_OPTIONS": json.dumps(faulty | dict(options)),
            "TEST_FOLDER": str(self.path),
            "PYTHONFAULTHANDLER": "1",
            TOKEN: self._token,
        }

    def renew(self) -> None:
        """Forget the jobs of the test before, and what they left; processes live on."""
        for model in (Job, Attempt, Effect):
            model.objects.all().delete()
        self.folder.clear()

    def end(self) -> None:
        """Kill every process of this site, frozen ones too, until none is left."""
        wait_until(lambda: not self._killed(), "every process to end")
        for program in self.programs:
            program.process.wait()

    def report(self) -> str:
        """Return all logs, for a test that has failed."""
        return "\n".join(f"--- {program.log.name}\n{program.text()}" for program in self.programs)

    def _killed(self) -> list[psutil.Process]:
        found = [process for process in psutil.process_iter() if self._is_ours(process)]
        for process in found:
            process.kill()
        psutil.wait_procs(found, timeout=1)
        return found

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            ours = process.environ().get(TOKEN) == self._token
            return ours and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.Error, OSError):
            return False  # gone meanwhile, or somebody else's

    # --- what is true in the end ------------------------------------------------------------------

    def wait_for_note(self, what: str, count: int = 1, **facts: Any) -> dict[str, Any]:
        """Wait until jobs have left `count` notes of one kind; return the last of them."""

        def seen() -> list[dict[str, Any]]:
            notes = self.folder.notes(what, **facts)
            return notes if len(notes) >= count else []

        return wait_until(seen, f"{count} notes {what} {facts}")[-1]

    def wait_until_seen(self, worker: Worker) -> None:
        """Wait until a reaper has seen the worker's life lock; on SQLite it need not have.

        A worker holds its lock before it has a row. A look that has seen the lock, and one that is
        under way, may have read the rows before: they count for nothing.
        """
        key = lock_key(worker.pk)
        if connection.vendor == "postgresql":
            earlier = len(self.folder.notes("look")) + 1
            wait_until(
                lambda: any(key in look["locks"] for look in self.folder.notes("look")[earlier:]),
                "a reaper to see the life lock",
            )

    def wait_until_done(self) -> None:
        """Wait until every job has ended."""
        wait_until(lambda: not states() - FINISHED, "every job to end")

    def assert_exactly_once(self) -> None:
        """Every job that writes and succeeded left one effect, no other any; the audit is empty."""
        writing = Job.objects.exclude(task__startswith="tests.process.tasks.nothing")
        succeeded = {str(job.pk) for job in writing.filter(state=State.SUCCEEDED)}
        assert sorted(Effect.objects.values_list("job_id", flat=True)) == sorted(succeeded)
        assert_sound()


def states() -> set[str]:
    """Return the states that jobs are in."""
    return set(Job.objects.values_list("state", flat=True))


def assert_sound() -> None:
    """Nothing in the tables breaks a promise."""
    assert audit(storage_for(connection)) == []
    assert duplicate_effects(Effect, "job_id") == []


def outcomes(job_id: object) -> list[str]:
    """Return how the attempts of a job ended, in their order."""
    return list(
        Attempt.objects.filter(job_id=job_id).order_by("number").values_list("outcome", flat=True)
    )


def backends(worker: Worker | None = None) -> list[int]:
    """Return the server-side pids of a worker's sessions, or of all (PostgreSQL)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity "
            "WHERE application_name = coalesce(%s, application_name)",
            [worker and session_name(worker.pk)],
        )
        return [pid for (pid,) in cursor.fetchall()]


def terminate(pids: Sequence[int]) -> None:
    """End sessions by their server-side pids, and wait until they are gone (PostgreSQL)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s) AS pid", [list(pids)])
    wait_until(lambda: not set(pids) & set(backends()), "the sessions to end")


def freeze(pid: int) -> None:
    """Stop a process; return when all its threads stand still, which takes each a while."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: thread_states(pid) <= {"T"}, "every thread to stand still")


def thread_states(pid: int) -> set[str]:
    """Return the letters of the states of a process's threads, nothing where /proc is missing."""
    files = Path(f"/proc/{pid}/task").glob("*/stat")
    return {file.read_text().rpartition(")")[2].split()[0] for file in files}


def is_running(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
