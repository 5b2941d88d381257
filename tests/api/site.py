"""The demo's site as real processes: a web server, and a worker, on a database of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from project.demo.crew import loopback_socket

ROOT = Path(__file__).parent.parent.parent
START_SECONDS = 60.0


@dataclass(frozen=True)
class Site:
    """Where the API is, and the tokens of those who may use it."""

    url: str
    token: str
    admin_token: str


PREPARE = """
import django
django.setup()
from django.core.management import call_command
from django.contrib.auth import get_user_model
from rest_framework.authtoken.models import Token
from project.demo.login import create_superuser, create_token
call_command("migrate", interactive=False, verbosity=0)
create_superuser()
print(create_token(), Token.objects.create(user=get_user_model().objects.get(username="demo")).key)
"""


@contextmanager
def running_site(
    directory: Path, database_url: str = "", settings: str = "project.settings"
) -> Iterator[Site]:
    """Run the site until the block ends; without a URL on an SQLite file in `directory`."""
    environment = os.environ | {
        "DATABASE_URL": database_url or f"sqlite:///{directory / 'site.sqlite3'}",
        "DJANGO_SETTINGS_MODULE": settings,
        "PYTHONPATH": str(ROOT),
        "LOG_LEVEL": "WARNING",
    }
    # The last line: checks and migrations may write others before it.
    token, admin_token = run([sys.executable, "-c", PREPARE], environment).split()[-2:]
    with ExitStack() as stack, loopback_socket() as listener:
        stack.enter_context(process(web(listener.fileno()), environment, [listener.fileno()]))
        stack.enter_context(process(worker(), environment))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/jobqueue/api/v1"
        wait_until_ready(f"{url}/health/ready/")
        yield Site(url, token, admin_token)


def web(descriptor: int) -> list[str]:
    argv = [sys.executable, "-m", "uvicorn", "project.asgi:application"]
    return [*argv, "--fd", str(descriptor), "--lifespan", "off", "--no-access-log"]


def worker() -> list[str]:
    return [sys.executable, "manage.py", "runworker", "--log-format", "json"]


def run(argv: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def process(
    argv: Sequence[str], environment: dict[str, str], descriptors: Sequence[int] = ()
) -> Iterator[None]:
    """Run a process until the block ends; it is told to stop, and waited for."""
    child = subprocess.Popen(
        argv, cwd=ROOT, env=environment, pass_fds=descriptors, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def wait_until_ready(url: str) -> None:
    """Wait until the site is up and has a worker."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            with urlopen(url, timeout=5):
                return
        except (HTTPError, URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"{url} did not answer 200")
