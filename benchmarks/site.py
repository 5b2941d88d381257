"""Settings of a site with the live page, on the database of the other benchmarks."""

from benchmarks.settings import *  # noqa: F403
from benchmarks.settings import INSTALLED_APPS

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "django.contrib.sessions",
    "rest_framework",
    "rest_framework.authtoken",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
ROOT_URLCONF = "benchmarks.site_urls"
ALLOWED_HOSTS = ["127.0.0.1"]
STATIC_URL = "/static/"
JOBQUEUE = {"API": {"THROTTLES": {"read": None}}}
