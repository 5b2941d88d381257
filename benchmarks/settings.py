"""Settings of the benchmarks: what a small site would have, on the database of BENCHMARK_URL."""

import os
from urllib.parse import unquote, urlsplit

_url = urlsplit(os.environ["BENCHMARK_URL"])

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(_url.path.lstrip("/")),
        "USER": unquote(_url.username or ""),
        "PASSWORD": unquote(_url.password or ""),
        "HOST": _url.hostname,
        "PORT": str(_url.port),
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "jobqueue",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "rest_framework",
    "rest_framework.authtoken",
    "benchmarks.app",
]
MIDDLEWARE = [  # as a new project has them
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
ROOT_URLCONF = "benchmarks.urls"
ALLOWED_HOSTS = ["127.0.0.1"]
TASKS = {
    "default": {
        "BACKEND": "jobqueue.backend.JobQueueBackend",
        "QUEUES": ["default"],
        # Notifications wake all processes at once; a REDIS_URL of the shell must not change that.
        "OPTIONS": {"HINTS": "postgres"},
    }
}
SECRET_KEY = "only for benchmarks"
USE_TZ = True
