"""What the demo starts it can kill, replace, stop, and find again when it has lost it."""

import os
import secrets
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from project.demo.fleet import MAX_SURPRISES, Fleet
from project.demo.interrupts import interrupted_once
from project.demo.launcher import after_interrupt
from project.demo.options import DemoError
from project.demo.sweep import TOKEN, started_by, sweep
from project.shop.checkpoints import Checkpoint, linger, take_reports
from tests.waiting import wait_until

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
TALKATIVE_FAILURE = [sys.executable, "-c", "print('no such table'); raise SystemExit(3)"]


@pytest.fixture
def token():
    token = secrets.token_hex(8)
    yield token
    for process in started_by(token):
        process.kill()


@pytest.fixture
def fleet(tmp_path, token):
    with Fleet(tmp_path, os.environ | {TOKEN: token}) as fleet:
        yield fleet


def test_two_signals_at_once_interrupt_once_and_without_a_word():
    """A terminal tells both processes of Ctrl-C, and the outer one tells the inner one again."""
    both = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, both)
    for number in both:  # to this thread: another may not block them, and then the tests end here
        signal.pthread_kill(threading.get_ident(), number)
    with pytest.raises(KeyboardInterrupt), interrupted_once():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, both)


def test_a_killed_service_is_replaced_at_once(fleet):
    fleet.start("sleeper", SLEEPER)
    first = fleet.pid("sleeper")
    assert fleet.kill("sleeper") == first
    assert not psutil.pid_exists(first)
    assert psutil.pid_exists(fleet.pid("sleeper"))


def test_a_service_that_ends_by_itself_is_started_again(fleet):
    fleet.start("sleeper", SLEEPER)
    first = fleet.pid("sleeper")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: fleet.tend() or fleet.pid("sleeper") != first, "another sleeper")


def test_a_service_that_cannot_run_is_given_up_with_its_last_words(fleet):
    fleet.start("failure", TALKATIVE_FAILURE)

    def is_given_up():
        try:
            fleet.tend()
        except DemoError as error:
            return "exit code 3" in str(error) and "no such table" in str(error)
        return False

    wait_until(is_given_up, "that the service is given up")
    assert fleet.log_of("failure").read_text().count("no such table") == MAX_SURPRISES + 1


def test_a_stopped_fleet_leaves_no_process(fleet, token):
    fleet.start("one", SLEEPER)
    fleet.start("two", SLEEPER)
    fleet.stop()
    assert started_by(token) == []


def test_the_sweep_ends_orphans_and_frozen_processes(token):
    environment = os.environ | {TOKEN: token}
    orphaning = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid)"
    subprocess.run(
        [sys.executable, "-c", orphaning, *SLEEPER],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with subprocess.Popen(SLEEPER, env=environment, stdout=subprocess.DEVNULL) as frozen:
        os.kill(frozen.pid, signal.SIGSTOP)
        assert sweep(token) == 2
    assert started_by(token) == []


def test_the_sweep_leaves_other_runs_alone(token):
    environment = os.environ | {TOKEN: token}
    with subprocess.Popen(SLEEPER, env=environment, stdout=subprocess.DEVNULL) as other:
        assert sweep(secrets.token_hex(8)) == 0
        assert other.poll() is None
        other.kill()


def test_a_checkpoint_is_reported_once(tmp_path, settings):
    settings.CHECKPOINT_DIR = str(tmp_path)
    settings.CHECKPOINT_SECONDS = 0
    report = Checkpoint(pid=1, job_id="job", order_id=2, fence=3)
    linger(report)
    assert list(take_reports(tmp_path)) == [report]
    assert list(take_reports(tmp_path)) == []


def test_without_a_directory_nobody_lingers(settings):
    settings.CHECKPOINT_DIR = ""
    linger(Checkpoint(pid=1, job_id="job", order_id=2, fence=3))


@pytest.mark.parametrize(("run", "demo"), [(0, 0), (1, 1), (130, 130), (-15, 130), (2, 130)])
def test_after_the_audit_ctrl_c_leaves_its_answer(run, demo):
    assert after_interrupt(run) == demo
