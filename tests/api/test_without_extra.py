"""Without REST framework all but the API and its page works, and the API says what to install."""

import subprocess
import sys

WITHOUT = """
import sys
for name in ("rest_framework", "drf_spectacular"):
    sys.modules[name] = None  # importing it is an ImportError now

import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["jobqueue"] + [
        f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "messages")
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    TASKS={"default": {"BACKEND": "jobqueue.backend.JobQueueBackend"}},
)
django.setup()

import pkgutil, jobqueue
from importlib import import_module
SURFACES = tuple(f"jobqueue.{name}" for name in ("api", "live", "urls", "migrations"))
for module in pkgutil.walk_packages(jobqueue.__path__, "jobqueue."):
    if not module.name.startswith(SURFACES):
        import_module(module.name)
from django.core.management import call_command
call_command("check", tags=["compatibility", "models"])
try:
    import_module("jobqueue.urls")
except Exception as error:
    print(error)
"""


def test_nothing_else_needs_rest_framework_and_the_api_says_that_it_does() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'install "django-jobqueue[api]"' in done.stdout
