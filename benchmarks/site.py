"""Settings of a site with the live page, on the database of the other benchmarks."""

from benchmarks.settings import *  # noqa: F403

STATIC_URL = "/static/"
JOBQUEUE = {"API": {"THROTTLES": {"read": None}}}
