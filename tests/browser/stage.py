"""What the page is looked at on: the shop on a database of its own, with web server and workers.

    python -m tests.browser.stage          # stays up until Ctrl-C, and prints where to look

All processes are real, end with the stage, and speak HTTP and SQL to each other as on any site. The
stage itself never touches Django: it asks over HTTP, as a browser does.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
import requests

from project.demo import crew
from project.demo.fleet import Fleet
from project.demo.load import order_number
from project.servers import PostgresServer, RedisServer

ROOT = Path(__file__).resolve().parents[2]
USERNAME = "demo"
API = "/jobqueue/api/v1"
WAIT_SECONDS = 60.0
OPTIONS = {
    "LEASE_SECONDS": 3.0,
    "HEARTBEAT_SECONDS": 0.75,
    "POLL_SECONDS": 0.5,
    "GRACE_SECONDS": 3.0,
    "SUSPICIONS": 50,
}
"""A short lease, so that a killed worker is missed while somebody watches."""

PREPARE = """
from django.contrib.auth import get_user_model
from django.core.management import call_command
call_command("migrate", interactive=False, verbosity=0)
user, _ = get_user_model().objects.get_or_create(
    username={username!r}, defaults={{"is_staff": True, "is_superuser": True}})
user.set_password({password!r})
user.save()
"""


class Client:
    """Somebody who is signed in, and asks the API."""

    def __init__(self, base: str, password: str) -> None:
        self.base = base
        self.session = requests.Session()
        login = f"{base}/admin/login/?next=/jobqueue/"
        self.session.get(login, timeout=30)
        self.session.headers["Referer"] = login
        given = {"username": USERNAME, "password": password}
        given["csrfmiddlewaretoken"] = self.session.cookies["csrftoken"]
        answer = self.session.post(login, data=given, allow_redirects=False, timeout=30)
        assert answer.status_code == 302, answer.text

    def get(self, path: str, **query: Any) -> Any:
        """Return what the API has at `path`."""
        answer = self.session.get(f"{self.base}{API}{path}", params=query, timeout=30)
        assert answer.ok, answer.text
        return answer.json()

    def post(self, path: str, body: Any, method: str = "POST") -> Any:
        """Return what the API answers."""
        token = {"X-CSRFToken": self.session.cookies["csrftoken"]}
        answer = self.session.request(
            method, f"{self.base}{API}{path}", json=body, headers=token, timeout=30
        )
        assert answer.ok, answer.text
        return answer.json()

    def order(self, number: int) -> None:
        """Order something in the shop: three jobs."""
        token = {"X-CSRFToken": self.session.cookies["csrftoken"]}
        body = order_number(number, marked=False)
        self.session.post(f"{self.base}/shop/orders/", json=body, headers=token, timeout=30)


def signed_in(started: Any, shop: Any, size: tuple[int, int], **options: Any) -> Any:
    """Return a tab of a browser of its own that is signed in, and shows nothing yet.

    shop: a Stage, or what else has a `base` and a `client`.
    """
    width, height = size
    context = started.new_context(viewport={"width": width, "height": height}, **options)
    context.add_cookies(
        [
            {"name": cookie.name, "value": cookie.value, "url": shop.base}
            for cookie in shop.client.session.cookies
        ]
    )
    return context.new_page()


class Stage:
    """A running shop: `base` is its address; `fleet` its processes, which may be killed."""

    def __init__(self, fleet: Fleet, base: str, password: str, environment: Mapping[str, str]):
        self.fleet = fleet
        self.base = base
        self.password = password
        self.environment = dict(environment)
        self.workers: list[str] = []

    @cached_property
    def client(self) -> "Client":
        """An HTTP client that is signed in, as a browser would be: once, as a login is slow."""
        return Client(self.base, self.password)

    def ask(self, query: str) -> tuple[Any, ...]:
        """Return the row that the database answers."""
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            row = connection.execute(query).fetchone()
        assert row is not None, query
        return row

    def start_workers(self, count: int, *, processes: int = 1, threads: int = 4) -> None:
        """Start supervisors, and wait until their processes are registered."""
        size = ["--processes", str(processes), "--threads", str(threads)]
        for number in range(len(self.workers) + 1, len(self.workers) + count + 1):
            name = f"workers-{number}"
            self.fleet.start(name, crew.manage("runworker", *size, "--name", name))
            self.workers.append(name)

    def kill_worker(self, name: str) -> None:
        """SIGKILL a supervisor with all its processes; it comes back at once."""
        for pid in children(self.fleet.pid(name)):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        self.fleet.kill(name)

    @contextmanager
    def plain_wsgi(self) -> Iterator[str]:
        """Serve the site under WSGI, too, where no WebSocket is; yield the address."""
        with crew.loopback_socket() as listener:
            argv = [sys.executable, "-m", "uvicorn", "project.wsgi:application"]
            argv += ["--interface", "wsgi", "--fd", str(listener.fileno()), "--no-access-log"]
            descriptors = [listener.fileno()]
            self.fleet.start("wsgi", argv, descriptors=descriptors)
            yield address(listener)

    @contextmanager
    def holding(self, job: str) -> Iterator[None]:
        """Keep the row of a job locked, as a transaction does that takes its time."""
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            connection.execute("SELECT FROM jobqueue_job WHERE id = %s FOR UPDATE", [job])
            yield

    def manage(self, *arguments: str) -> str:
        """Run a Django command of the shop; return what it printed."""
        return run(crew.manage(*arguments), self.environment)


@contextmanager
def stage(
    *,
    redis: bool = True,
    database_url: str = "",
    work_seconds: float = 0.05,
    fail_rate: float = 0.0,
    options: Mapping[str, Any] | None = None,
) -> Iterator[Stage]:
    """Start servers and web server, but no worker; kill all at the end.

    Workers bring what looks after schedules and leases: each process less starts seconds sooner.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jobqueue-stage-")))
        if not database_url:
            database_url = stack.enter_context(PostgresServer(durable=False)).url
            options = {"ACCEPT_LOSS": True, **(options or {})}  # of a power cut, not of a kill
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "DATABASE_URL": database_url,
            "REDIS_URL": stack.enter_context(RedisServer()).url if redis else "",
            "DEBUG": "off",
            "SERVE_STATIC": "on",
            "LOG_LEVEL": "WARNING",
            "PYTHONUNBUFFERED": "1",
            "JOBQUEUE_OPTIONS": json.dumps(OPTIONS | dict(options or {})),
            "SHOP_WORK_SECONDS": str(work_seconds),
            "SHOP_FAIL_RATE": str(fail_rate),
        }
        password = secrets.token_urlsafe(9)
        gateway = stack.enter_context(crew.loopback_socket())
        web = stack.enter_context(crew.loopback_socket())
        environment["GATEWAY_URL"] = address(gateway)
        fleet = stack.enter_context(Fleet(folder, environment))
        stack.callback(fleet.abandon)
        crew.start_gateway(fleet, gateway, seed=1)
        crew.start_web(fleet, web)  # which starts up while the database is prepared
        code = PREPARE.format(username=USERNAME, password=password)
        run(crew.manage("shell", "--command", code), environment)
        found = Stage(fleet, address(web), password, environment)
        wait_until(lambda: is_up(found.base), "the web server answers")
        try:
            yield found
        except BaseException:
            print(last_words(folder))
            raise


def last_words(folder: Path) -> str:
    """Return the ends of all logs, for whoever looks why something failed."""
    logs = sorted(folder.glob("*.log"))
    return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}" for log in logs)


def address(listener: socket.socket) -> str:
    """Return the address of a listening socket."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def is_up(base: str) -> bool:
    """Return whether the web server answers."""
    try:
        return requests.get(f"{base}/admin/login/", timeout=5).status_code == 200
    except requests.RequestException:
        return False


def run(argv: Any, environment: Mapping[str, str]) -> str:
    """Run a command to its end; return its output. Raise AssertionError if it fails."""
    done = subprocess.run(
        list(argv), env=dict(environment), cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def children(pid: int) -> list[int]:
    """Return the processes below one."""
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def wait_until(condition: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    """Return what `condition` says once it is true. Raise AssertionError after `seconds`."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, f"waited {seconds:g} s, and still not: {what}"
        time.sleep(0.1)
    return found


def main() -> None:
    """Stay up, for whoever works on the page."""
    with stage(redis="--no-redis" not in sys.argv, fail_rate=0.1) as found:
        found.start_workers(2)
        print(f"JOBQUEUE_URL={found.base}", flush=True)
        print(f"{found.base}/jobqueue/  login {USERNAME}, password {found.password}", flush=True)
        try:
            while True:
                found.fleet.tend()
                time.sleep(1)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
