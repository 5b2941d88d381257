"""The command as a whole: help, backends, errors, and the alias of runworker."""

import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command
from django.db.utils import OperationalError, ProgrammingError

from jobqueue import control
from jobqueue.management.commands.jobs import Command as Jobs
from jobqueue.management.commands.runworker import (
    SESSIONS_PER_PROCESS,
    SESSIONS_PER_SUPERVISOR,
    most_sessions,
    queues_to_serve,
)
from jobqueue.management.commands.runworker import Command as RunWorker
from jobqueue.management.endings import INTERRUPTED, NOBODY_READS, quiet_endings
from jobqueue.management.jobs_commands import SUBCOMMANDS
from jobqueue.runtime.worker_plan import WorkerPlan
from tests.conftest import CHECKOUT


def manage(environment, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "django", *words],
        env=environment,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_every_subcommand_explains_itself(capsys):
    for part in SUBCOMMANDS:
        if part.name == "work":
            continue
        with pytest.raises(SystemExit) as ended:
            call_command("jobs", part.name, "--help")
        assert ended.value.code == 0
        text = capsys.readouterr().out
        assert " ".join(part.help.split())[:40] in " ".join(text.split())
        assert "--backend" in text
        assert "--actor" in text


def test_list_of_commands_fits_a_screen(capsys):
    with pytest.raises(SystemExit):
        call_command("jobs", "--help")
    text = capsys.readouterr().out
    assert all(f"    {part.name} " in text for part in SUBCOMMANDS)
    assert max(map(len, text.splitlines())) <= 100


def test_no_command_lists_them_a_line_each(capsys):
    with pytest.raises(SystemExit) as ended:
        Jobs().run_from_argv(["manage.py", "jobs"])
    assert ended.value.code == 2  # a script whose variable is empty has not asked for help
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines[2:]] == [part.name for part in SUBCOMMANDS]
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith("…") for line in lines)


def test_no_command_from_code_is_refused(jobs):
    assert jobs().code == 2
    assert "status, list" in str(jobs().error)


def test_what_a_command_does_not_know_shows_its_own_usage(capsys):
    with pytest.raises(SystemExit) as ended:
        Jobs().run_from_argv(["manage.py", "jobs", "show", "x", "--no-such-option"])
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert "usage: manage.py jobs show" in err
    assert "--no-such-option" in err


def test_ctrl_c_ends_a_command_without_a_traceback(monkeypatch, capsys):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(control, "status", interrupt)
    with pytest.raises(SystemExit) as ended:
        Jobs().run_from_argv(["manage.py", "jobs", "status"])
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("size", [10, 100_000], ids=["still buffered", "more than a buffer"])
def test_a_pipe_that_nobody_reads_ends_a_command_quietly(monkeypatch, size):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:  # closing it flushes, as the end of a process does
        monkeypatch.setattr(sys, "stdout", pipe)
        with pytest.raises(SystemExit) as ended, quiet_endings():
            print("x" * size)
    assert ended.value.code == NOBODY_READS


def test_backend_that_is_not_ours_is_refused(jobs, settings):
    settings.TASKS = {
        **settings.TASKS,
        "eager": {"BACKEND": "jobqueue.backend.ImmediateBackend"},
    }
    for alias in ("eager", "nowhere"):
        ran = jobs("status", "--backend", alias)
        assert ran.code == 1
        assert "it has default" in str(ran.error)


def test_other_backend_is_looked_at_by_its_alias(jobs, settings):
    settings.TASKS = {**settings.TASKS, "second": settings.TASKS["default"]}
    assert jobs("status", "--json", "--backend", "second").json["backend"] == "second"
    assert jobs("--backend", "second", "status", "--json").json["backend"] == "second"


def test_unusable_options_are_one_line(jobs, settings):
    settings.TASKS = {"default": {**settings.TASKS["default"], "OPTIONS": {"BATCH": "many"}}}
    ran = jobs("status")
    assert ran.code == 1
    assert "BATCH" in str(ran.error)
    assert "manage.py check" in str(ran.error)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ProgrammingError('relation "jobqueue_job" does not exist\nLINE 1'), "migrate"),
        (OperationalError("connection refused"), "does not answer"),
        (OperationalError("no such table: jobqueue_job"), "migrate"),
    ],
)
def test_database_errors_say_what_to_do(jobs, monkeypatch, error, says):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(control, "status", fail)
    ran = jobs("status")
    assert ran.code == 1
    assert says in str(ran.error)
    assert "LINE 1" not in str(ran.error)


def test_actor_that_cannot_be_recorded_is_refused(jobs):
    ran = jobs("pause", "mail", "--actor", "k" * 300)
    assert ran.code == 1
    assert "Nothing was changed." in str(ran.error)


def test_work_passes_everything_on_to_runworker(monkeypatch):
    seen = {}
    monkeypatch.setattr(RunWorker, "handle", lambda self, *args, **options: seen.update(options))
    call_command("jobs", "work", "--queues", "mail", "--no-maintenance", "--backend", "default")
    assert seen["queues"] == "mail"
    assert seen["no_maintenance"] is True


def test_work_refuses_what_runworker_refuses(monkeypatch):
    monkeypatch.setattr(RunWorker, "handle", lambda self, *args, **options: None)
    with pytest.raises(CommandError, match="--no-such-option"):
        call_command("jobs", "work", "--no-such-option")


def test_work_from_the_command_line_is_runworker(child_environment):
    ran = manage(child_environment, "jobs", "work", "--help")
    assert ran.returncode == 0
    assert "--until-empty" in ran.stdout


def test_exit_code_reaches_the_shell(child_environment):
    ran = manage(child_environment, "jobs", "show", "x", "--no-color")
    assert ran.returncode == 1
    assert ran.stderr.startswith("CommandError: Not the id of a job")
    assert manage(child_environment, "jobs", "list", "--state", "x").returncode == 2


def test_audit_from_the_command_line(child_environment):
    ran = manage(child_environment, "jobs", "audit", "--json", "--settings=tests.settings")
    assert ran.returncode == 0, ran.stderr
    assert '"violations": []' in ran.stdout


def test_a_queue_that_is_not_there_is_refused_with_those_that_are(settings):
    settings.TASKS = {"default": {**settings.TASKS["default"], "QUEUES": ["mail", "stock"]}}
    with pytest.raises(CommandError) as refused:
        queues_to_serve("default", "mial, stock, mall")
    assert str(refused.value).startswith("Queues mall, mial are not in QUEUES of TASKS['default']")
    assert "which has mail, stock. Name some of these with --queues" in str(refused.value)
    assert queues_to_serve("default", "stock") == ("stock",)


def test_connections_that_runworker_tells_of_include_those_of_a_suspects_process():
    def plan(processes, threads):
        return WorkerPlan(backend="default", queues=(), processes=processes, threads=threads)

    a_process, supervisor = SESSIONS_PER_PROCESS, SESSIONS_PER_SUPERVISOR
    assert most_sessions(plan(1, 4)) == (4 + a_process) + (1 + a_process) + supervisor
    assert most_sessions(plan(3, 2)) == 3 * (2 + a_process) + (1 + a_process) + supervisor
