"""Processes by name: started, restarted as an init system would, and stopped.

Each is a session of its own, so that a Ctrl-C at the terminal reaches only the demo, which then
stops them in order. Its output goes to `<name>.log` in the fleet's directory.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from project.demo.options import DemoError

MAX_SURPRISES = 5
"""Exits of one service that nobody caused; more mean that it cannot run at all."""
STOP_SECONDS = 10.0


@dataclass(slots=True)
class Service:
    """One process: how to start it, and the one now running."""

    name: str
    argv: Sequence[str]
    descriptors: Sequence[int]
    process: subprocess.Popen[bytes]
    surprises: int = 0


class Fleet:
    """The services of one run, in the order of their start. Safe for several threads."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.directory = directory
        self._environment = dict(environment)
        self._services: dict[str, Service] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self, name: str, argv: Sequence[str], *, descriptors: Sequence[int] = ()) -> None:
        """Start a service; it inherits the file descriptors given, and no others."""
        process = self._spawn(name, argv, descriptors)
        with self._lock:
            self._services[name] = Service(name, argv, descriptors, process)

    def pid(self, name: str) -> int:
        """Return the process id of the service now running under `name`."""
        return self._services[name].process.pid

    def log_of(self, name: str) -> Path:
        """Return the file that the service `name`, and its children, write to."""
        return self.directory / f"{name}.log"

    def kill(self, name: str) -> int:
        """SIGKILL the service, start it again at once, and return the killed process's id."""
        with self._lock:
            service = self._services[name]
            killed = service.process.pid
            service.process.kill()
            service.process.wait()
            service.process = self._spawn(name, service.argv, service.descriptors)
            return killed

    def tend(self) -> None:
        """Start again whatever ended by itself. Raise DemoError if it does so again and again."""
        with self._lock:
            for service in self._services.values():
                if service.process.poll() is None:
                    continue
                service.surprises += 1
                if service.surprises > MAX_SURPRISES:
                    raise DemoError(self._last_words(service))
                service.process = self._spawn(service.name, service.argv, service.descriptors)

    def stop(self) -> None:
        """Stop all services, the last started first, and kill what has not ended in time."""
        with self._lock:
            services = list(reversed(self._services.values()))
            self._services.clear()
        for service in services:
            service.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for service in services:
            try:
                service.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(service.process.pid, signal.SIGKILL)
                service.process.wait()

    def abandon(self) -> None:
        """SIGKILL all services with their children: what they leave is of no use to anybody."""
        with self._lock:
            services = list(self._services.values())
            self._services.clear()
        for service in services:
            with suppress(ProcessLookupError):
                os.killpg(service.process.pid, signal.SIGKILL)
        for service in services:
            service.process.wait()

    def _spawn(
        self, name: str, argv: Sequence[str], descriptors: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        with self.log_of(name).open("ab") as log:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                pass_fds=descriptors,
                start_new_session=True,
            )

    def _last_words(self, service: Service) -> str:
        lines = self.log_of(service.name).read_text(errors="replace").splitlines()
        code = service.process.returncode
        return f"{service.name} keeps ending, with exit code {code}:\n" + "\n".join(lines[-20:])
