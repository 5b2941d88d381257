"""Settings of the tests.

| variable | meaning |
| --- | --- |
| TEST_DATABASE_URL | the `default` database, PostgreSQL or an SQLite file; `tests.plugin` sets it |
| TEST_OTHER_DATABASE_URL | the `other` database; by default one named beside `default` |

A process that a test starts uses these settings too, with both variables naming the databases
that the running test sees (fixture `child_environment`).
"""

import os
from typing import Any
from urllib.parse import unquote, urlsplit

import django


def database(url: str) -> dict[str, Any]:
    """Return a Django database for `postgresql://…` or `sqlite:///absolute/path`."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        # Exactly one slash belongs to the URL, the rest is the path.
        return sqlite(unquote(parts.path).removeprefix("/"))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
    }


def sqlite(path: str) -> dict[str, Any]:
    """Return an SQLite database in a file, as several processes may share it."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        # Without a name Django's test database would be in memory, private to a connection.
        "TEST": {"NAME": path},
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # OFF loses data only with the machine, never with a process.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;",
        },
    }


def other_url(url: str) -> str:
    """Return the URL of a database beside the given one."""
    stem, dot, suffix = url.rpartition(".sqlite3")
    return f"{stem}_other{dot}" if dot and not suffix else f"{url}_other"


TEST_DATABASE_URL = os.environ.get("TEST_DATABASE_URL", "sqlite:////tmp/jobqueue.sqlite3")
DATABASES = {
    "default": database(TEST_DATABASE_URL),
    "other": database(os.environ.get("TEST_OTHER_DATABASE_URL") or other_url(TEST_DATABASE_URL)),
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "jobqueue",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "rest_framework",
    "rest_framework.authtoken",
    "drf_spectacular_sidecar",
    "tests.app",
]

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

TASKS = {
    "default": {
        "BACKEND": "jobqueue.backend.JobQueueBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {},
    },
}

SECRET_KEY = "only for tests"
USE_TZ = True
TIME_ZONE = "UTC"
ROOT_URLCONF = "tests.urls"
STATIC_URL = "/static/"

DJANGO_HAS_TASKS = django.VERSION >= (6, 0)
