"""Settings of the processes that tests/process starts: those of the tests, with tasks of their own.

| variable | meaning |
| --- | --- |
| TEST_OPTIONS | JSON: engine options, over the ones below |
| TEST_APPS | installed apps more, separated by commas |
| TEST_DATABASE | JSON: keys of the default database more, such as CONN_MAX_AGE and OPTIONS |
| TEST_FOLDER | where notes, gates and faults are files (`tests.process.folder`) |
"""

import json
import os

from tests.settings import *  # noqa: F403 - settings build on settings
from tests.settings import DATABASES, TASKS

# Workers serve no pages. Many processes start here, and each imports what is installed.
_needed = ["jobqueue", "django.contrib.auth", "django.contrib.contenttypes", "tests.app"]
INSTALLED_APPS = [*_needed, *filter(None, os.environ.get("TEST_APPS", "").split(","))]
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "tests.process.settings"  # a module without pages
urlpatterns: list[object] = []

TASKS["default"]["OPTIONS"] = {
    "IMPORTS": ["tests.process.tasks"],
    # A lease that a busy machine keeps; tests that wait for one to run out shorten it.
    "LEASE_SECONDS": 15,
    "HEARTBEAT_SECONDS": 0.5,
    "POLL_SECONDS": 0.2,
    "RETRY": {"base": 0.1, "factor": 1, "jitter": 0},
    "ACCEPT_LOSS": True,  # the tests' server writes nothing to disk for good
    **json.loads(os.environ.get("TEST_OPTIONS", "{}")),
}

_database = json.loads(os.environ.get("TEST_DATABASE", "{}"))
_options = DATABASES["default"].get("OPTIONS", {}) | _database.pop("OPTIONS", {})
DATABASES["default"] |= _database | {"OPTIONS": _options}
