"""The core asks for nothing but Django: checks pass without the admin and the extras."""

import subprocess
import sys

import pytest

from jobqueue.compat import FRAMEWORK_LOGGER

MANAGE = """
import sys
for name in {missing!r}:
    sys.modules[name] = None  # importing it is an ImportError now

from django.conf import settings
from django.core.management import execute_from_command_line
CONTEXT = ["template.context_processors.request", "contrib.auth.context_processors.auth",
           "contrib.messages.context_processors.messages"]
settings.configure(
    INSTALLED_APPS={apps!r},
    DATABASES={{"default": {{
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        "OPTIONS": {{"transaction_mode": "IMMEDIATE", "timeout": 20}},
    }}}},
    MIDDLEWARE=[f"django.contrib.{{name}}" for name in (
        "sessions.middleware.SessionMiddleware", "auth.middleware.AuthenticationMiddleware",
        "messages.middleware.MessageMiddleware")],
    TASKS={{"default": {{"BACKEND": "jobqueue.backend.JobQueueBackend"}}}},
    TEMPLATES=[{{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {{"context_processors": [f"django.{{name}}" for name in CONTEXT]}},
    }}],
)
execute_from_command_line(["manage.py", "check", "--fail-level", "WARNING"])
"""
FORGOTTEN = """
import django
from django.conf import settings
settings.configure(TASKS={"default": {"BACKEND": "jobqueue.backend.JobQueueBackend"}})
django.setup()
from %s import task_backends
task_backends["default"].check()
"""
CORE = ["jobqueue", "django.contrib.contenttypes", "django.contrib.auth"]
ADMIN = [*CORE, *(f"django.contrib.{name}" for name in ("sessions", "messages", "admin"))]
API = ("rest_framework", "drf_spectacular")
LIVE = ("channels", "websockets")


@pytest.mark.parametrize(
    ("apps", "missing"),
    [(CORE, ()), (CORE, API + LIVE), (ADMIN, API), (ADMIN, LIVE)],
    ids=["core", "core alone", "admin without API", "admin without live page"],
)
def test_checks_pass_with_templates_of_a_new_project(
    apps: list[str], missing: tuple[str, ...]
) -> None:
    script = MANAGE.format(apps=apps, missing=missing)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_using_the_backend_without_the_app_says_what_to_do() -> None:
    script = FORGOTTEN % FRAMEWORK_LOGGER
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert "ImproperlyConfigured" in last
    assert '"jobqueue" is not in INSTALLED_APPS' in last
