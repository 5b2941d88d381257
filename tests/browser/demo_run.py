"""`make demo` on a terminal of its own, for whoever looks at its live page as README says to."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from project.demo.crew import manage
from tests.browser.stage import ROOT, Client, wait_until

ROWS, COLUMNS = 50, 130
START_SECONDS, RUN_SECONDS, STOP_SECONDS = 120.0, 400.0, 60.0
ADDRESS = re.compile(r"Watch it live: (http://[\d.:]+)/jobqueue/.*?password (\S+)\)")
VERDICT = re.compile(r"Audit (passed|FAILED).*")
JOBS = re.compile(r"(?m)^\W*jobs\W+(\d+)\W*$")
TABLE = re.compile(r"^\W*[|│]|Audit (passed|FAILED)")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class DemoRun:
    """A demo that runs, or has and stays up: `base` is its site; `said` all it has printed."""

    def __init__(self, master: int, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._said = b""
        self._master = master
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        wait_until(lambda: ADDRESS.search(self.said), "the demo says where it is", START_SECONDS)
        found = ADDRESS.search(self.said)
        assert found is not None
        self.base, self.password = found.groups()

    @cached_property
    def client(self) -> Client:
        """An HTTP client that is signed in."""
        return Client(self.base, self.password)

    @property
    def said(self) -> str:
        """What stands on the terminal, all of it."""
        return ESCAPES.sub("", self._said.decode(errors="replace"))

    def table(self) -> str:
        """Wait for the end of the run; return its table, and the verdict below it."""
        wait_until(lambda: VERDICT.search(self.said), "the demo comes to its verdict", RUN_SECONDS)
        lines = [line for line in self.said.splitlines() if TABLE.search(line)]
        first = max(
            at for at, line in enumerate(lines) if "orders" in line
        )  # what is above is its course
        return "\n".join(lines[first:])

    def jobs(self) -> int:
        """Return how many jobs the table says there were."""
        (count,) = JOBS.findall(self.table())
        return int(count)

    def _read(self) -> None:
        try:
            while text := os.read(self._master, 65_536):
                self._said += text
        except OSError:  # nobody has the terminal open any more
            pass


@contextmanager
def demo_run() -> Iterator[DemoRun]:
    """Run the demo, and press Ctrl-C at the end."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        manage("demo"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=ROOT,
        start_new_session=True,
    )
    os.close(terminal)
    try:
        yield DemoRun(master, process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(STOP_SECONDS)
        os.close(master)
