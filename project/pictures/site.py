"""The demo's site with an incident in it: a database of its own, filled, and served.

    with IncidentSite(folder) as site:
        site.url, site.keys

On SQLite its clock stands still: whenever a page is asked for, it is of the same moment.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError
from uuid import UUID

from jobqueue.storage.life_file import LifeFile

ROOT = Path(__file__).parent.parent.parent
STANDING = "project.pictures.settings"
START_SECONDS = 60.0
LEASE_SECONDS, LONG_LEASE_SECONDS = 15.0, 7_200.0
"""For so long workers live by their rows; the long one where time passes and no lock says so."""
FILL = """
import json, sys
import django
django.setup()
from project.pictures.incident import build
json.dump(build(float(sys.argv[1])), sys.stdout, default=str)
"""


class IncidentSite:
    """The site, from entering to leaving. database_url: default is an SQLite file in `folder`."""

    def __init__(self, folder: Path, database_url: str = "") -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.keys: dict[str, Any] = {}
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "project.settings" if database_url else STANDING,
            "DATABASE_URL": database_url or f"sqlite:///{folder / 'incident.sqlite3'}",
            "SERVE_STATIC": "1",
            "JOBQUEUE_OPTIONS": '{"ACCEPT_LOSS": true}',
            "PYTHONPATH": str(ROOT),
        }
        self._lives: list[LifeFile] = []
        self._folder = folder
        self._lease_seconds = LONG_LEASE_SECONDS if database_url else LEASE_SECONDS
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> IncidentSite:
        self.run("-m", "django", "migrate", "--verbosity=0")
        filled = self.run("-c", FILL, str(self._lease_seconds))
        self.keys = json.loads(filled)
        self._live()
        arguments = ["-m", "uvicorn", "project.asgi:application", f"--port={self.port}"]
        self._server = subprocess.Popen(
            [sys.executable, *arguments, "--log-level=warning"], env=self.environment, cwd=ROOT
        )
        self._wait()
        return self

    def _live(self) -> None:
        """Hold the locks by which SQLite knows that the incident's workers live."""
        database = self._folder / "incident.sqlite3"
        self._lives = [LifeFile(database, UUID(worker)) for worker in self.keys["alive"]]
        for life in self._lives:
            life.hold()

    def __exit__(self, *_error: object) -> None:
        for life in self._lives:
            life.remove()
        if self._server is not None:
            self._server.terminate()
            self._server.wait()

    def run(self, *arguments: str) -> str:
        """Run Python with the site's environment; return what it printed."""
        done = subprocess.run(
            [sys.executable, *arguments],
            env=self.environment,
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def _wait(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"{self.url}/admin/login/", timeout=5)
                return
            except (URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError(f"{self.url} did not answer within {START_SECONDS:.0f} s")


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
