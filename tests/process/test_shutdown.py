"""Signals and the grace: the first lets jobs end, the second gives them back, none loses one."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import psutil
import pytest
from django.db import connection

from jobqueue.models import Job
from jobqueue.runtime.exit_codes import ABORTED, CLEAN, MISCONFIGURED
from tests.app.models import Effect
from tests.process.harness import Program, Site, is_running, outcomes
from tests.process.tasks import (
    nothing_but_an_orphan,
    run_program_and_commit,
    spin_and_commit,
    wait_and_commit,
    wait_in_coroutine,
    write,
    write_and_wait,
)
from tests.waiting import wait_until

CONTAINER = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
IN_TRANSACTION = [] if connection.vendor == "sqlite" else [write_and_wait]
"""On SQLite such a job would keep everybody else from writing."""
IN_FLIGHT = [
    wait_and_commit,
    wait_in_coroutine,
    spin_and_commit,
    run_program_and_commit,
    *IN_TRANSACTION,
]


@pytest.fixture
def terminal() -> Iterator[tuple[int, str]]:
    """A terminal: what a person types goes into the first, programs open the second."""
    keyboard, screen = os.openpty()
    try:
        yield keyboard, os.ttyname(screen)
    finally:
        os.close(keyboard)
        os.close(screen)


def hang_up(program: Program) -> None:
    program.send(signal.SIGHUP)


def terminate_group(program: Program) -> None:
    os.killpg(program.pid, signal.SIGTERM)


def terminate_everybody(program: Program) -> None:
    """Signal the children first, as an init that ends a container may."""
    for pid in [*program.workers(), program.pid]:
        os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize("stop", [hang_up, terminate_group, terminate_everybody])
def test_first_signal_lets_the_job_end_and_claims_no_other(site, stop):
    program = site.runworker("--threads", "1")
    assert_stops_gracefully(site, program, lambda: stop(program))


def test_ctrl_c_in_a_terminal_lets_the_job_end(site, terminal):
    keyboard, screen = terminal
    # The leader of a session without a terminal gets the first one that it opens.
    under = ["/bin/sh", "-c", f'exec "$0" "$@" < {screen}']
    program = site.runworker("--threads", "1", under=under)
    assert_stops_gracefully(site, program, lambda: os.write(keyboard, b"\x03"))


def test_first_process_of_a_container_stops_gracefully_and_leaves_no_zombies(site):
    """Without an init it is the parent of whatever a job leaves behind."""
    if subprocess.run([*CONTAINER, "true"], check=False, capture_output=True).returncode:
        pytest.skip("may not make a namespace of processes here")
    program = site.runworker("--threads", "1", under=CONTAINER)
    nothing_but_an_orphan.enqueue()
    site.wait_until_done()
    (first,) = psutil.Process(program.pid).children()
    wait_until(lambda: not orphans(first), "the orphan to end and to be forgotten")
    assert_stops_gracefully(site, program, lambda: first.send_signal(signal.SIGTERM))


def test_second_signal_ends_every_kind_of_job_and_gives_it_back_at_once(site):
    program = site.runworker()
    jobs = [task.enqueue("gate") for task in IN_FLIGHT[:4]]
    site.wait_for_note("start", count=4)
    program.send(signal.SIGTERM)
    program.wait_for("worker.draining")
    program.send(signal.SIGTERM)
    assert program.wait() == ABORTED
    assert Effect.objects.count() == 0
    assert set(Job.objects.values_list("state", "suspicions")) == {("ready", 0)}
    assert all(outcomes(job.id) == ["lost"] for job in jobs)
    site.folder.open_gate("gate")
    assert site.runworker("--until-empty").wait() == CLEAN
    assert all(outcomes(job.id) == ["lost", "succeeded"] for job in jobs)
    site.assert_exactly_once()


def test_job_that_outlives_the_grace_is_given_back_and_runs_elsewhere(site):
    program = site.runworker(GRACE_SECONDS=0.5)
    job = wait_and_commit.enqueue("gate")
    pid = site.wait_for_note("start")["pid"]
    assert program.stop() == ABORTED
    assert not is_running(pid)
    assert Job.objects.get(pk=job.id).state == "ready"
    site.folder.open_gate("gate")
    assert site.runworker("--until-empty").wait() == CLEAN
    assert outcomes(job.id) == ["lost", "succeeded"]
    site.assert_exactly_once()


def test_frozen_child_does_not_keep_its_supervisor_from_stopping(site):
    program = site.runworker(GRACE_SECONDS=0.5)
    job = wait_and_commit.enqueue("gate")
    os.kill(site.wait_for_note("start")["pid"], signal.SIGSTOP)
    assert program.stop() == ABORTED
    assert Job.objects.get(pk=job.id).state == "ready"


def test_until_empty_exits_clean_and_health_file_says_what_was_done(site):
    write.enqueue_many([write.bind() for _ in range(20)])
    health = site.path / "health.json"
    program = site.runworker("--health-file", str(health))
    wait_until(health.exists, "the health file")
    site.wait_until_done()
    wait_until(lambda: json.loads(health.read_text())["succeeded"] == 20, "the count of jobs")
    assert program.stop() == CLEAN
    assert site.runworker("--until-empty").wait() == CLEAN
    site.assert_exactly_once()


def test_broken_module_of_tasks_is_named_with_its_trace(site):
    program = site.runworker(environment={"TEST_APPS": "tests.process.broken"})
    assert program.wait() == MISCONFIGURED
    assert "broken on purpose" in program.text()
    assert "tests/process/broken/tasks.py" in program.text()


def test_option_that_cannot_be_used_is_named(site):
    program = site.runworker(LEASE_SECONDS=3, HEARTBEAT_SECONDS=2)
    assert program.wait() == MISCONFIGURED
    assert "HEARTBEAT_SECONDS" in program.text()


def orphans(first: psutil.Process) -> list[psutil.Process]:
    """Return what the job left to the first process, ended or not."""
    return [each for each in first.children() if each.name() == "sleep"]


def assert_stops_gracefully(site: Site, program: Program, stop: Callable[[], object]) -> None:
    """A job in flight ends after `stop`, a later one is left, and the program exits clean.

    It holds the only slot: whoever obeys the order a moment later claims nothing before it ends.
    """
    job = wait_and_commit.enqueue("gate")
    site.wait_for_note("start")
    stop()
    program.wait_for("worker.draining")
    later = write.enqueue()
    site.folder.open_gate("gate")
    assert program.wait() == CLEAN
    assert outcomes(job.id) == ["succeeded"]
    assert Job.objects.get(pk=later.id).state == "ready"
    site.assert_exactly_once()
