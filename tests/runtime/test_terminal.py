"""A line of status and lines of others share a terminal, and all log lines have one form."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest

from jobqueue.runtime.logs import TextFormatter, configure
from jobqueue.runtime.terminal import WIPE, StatusLine, WipingStream, share_terminal, waiting_for


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """Return the lines as a terminal would show them."""
        return [line.rpartition(WIPE)[2] for line in self.getvalue().split("\n")]


def take_over(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Let the test write to a terminal; pytest puts its own streams back after each fixture."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


@pytest.fixture
def unformatted() -> Iterator[logging.Handler]:
    """A handler on standard error in which nobody has chosen a form, as Django's default is."""
    handler = logging.StreamHandler()
    logger = logging.getLogger("django")
    logger.addHandler(handler)
    ours = logging.getLogger("jobqueue")
    before = (ours.handlers[:], ours.propagate, ours.level)
    last_resort = logging.lastResort and logging.lastResort.formatter
    yield handler
    logger.removeHandler(handler)
    ours.handlers, ours.propagate, ours.level = before
    if logging.lastResort:
        logging.lastResort.formatter = last_resort


def test_lines_of_others_wipe_out_the_status_and_it_comes_back_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = take_over(monkeypatch)
    share_terminal("auto")
    status = StatusLine(sys.stdout)
    status.show("claimed 1")
    print("printed by a job")
    status.show("claimed 2")
    sys.stderr.write("logged, in")
    sys.stderr.write(" two parts\n")
    status.end("claimed 3")
    assert terminal.screen() == ["printed by a job", "logged, in two parts", "claimed 3", ""]


@pytest.mark.parametrize("log_format", ["json", "auto"])
def test_without_a_status_line_nothing_is_wiped(
    monkeypatch: pytest.MonkeyPatch, log_format: str
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal() if log_format == "json" else io.StringIO())
    share_terminal(log_format)
    assert not isinstance(sys.stdout, WipingStream)


def test_a_status_line_never_wraps() -> None:
    terminal = Terminal()
    StatusLine(terminal).show("x" * 500)  # of unknown width, like any terminal that says 0
    assert len(terminal.screen()[-1]) < 80


def test_what_has_no_form_of_its_own_gets_ours(unformatted: logging.Handler) -> None:
    configure("json", "info")
    record = logging.makeLogRecord({"name": "django.tasks", "msg": "Task", "levelname": "INFO"})
    assert json.loads(unformatted.format(record))["message"] == "Task"


def test_what_the_project_has_formatted_stays(unformatted: logging.Handler) -> None:
    own = logging.Formatter("mine: %(message)s")
    unformatted.setFormatter(own)
    configure("text", "info")
    assert unformatted.formatter is own


@pytest.mark.parametrize(
    ("name", "text"),
    [("jobqueue", "INFO    job.done"), ("django.tasks", "INFO    django.tasks: job.done")],
)
def test_lines_for_people_name_the_logger_of_others_only(name: str, text: str) -> None:
    record = logging.makeLogRecord({"name": name, "msg": "job.done ", "levelname": "INFO"})
    assert TextFormatter().format(record)[9:] == text


@pytest.mark.parametrize(
    ("running", "says"),
    [(1, "for 1 running job. Ctrl-C again stops at once; it runs again."),
     (2, "for 2 running jobs. Ctrl-C again stops at once; they run again.")],
)  # fmt: skip
def test_who_stops_a_worker_is_told_what_it_waits_for(running: int, says: str) -> None:
    assert waiting_for(running, 30.0) == f"Waiting up to 30 s {says}"
