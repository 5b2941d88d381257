"""Troubles made on purpose, for the demo: work that takes a while, and sometimes fails."""

import random
import time

from django.conf import settings


class PurposefulError(Exception):
    """This attempt was chosen to fail (FAIL_RATE)."""


def work_a_little() -> None:
    """Take WORK_SECONDS, give or take half, then fail in FAIL_RATE of all calls.

    Called after a task has written: a failure must take the write back, and a worker killed
    here leaves one uncommitted.
    """
    time.sleep(settings.WORK_SECONDS * random.uniform(0.5, 1.5))
    if random.random() < settings.FAIL_RATE:
        raise PurposefulError("The demo chose this attempt to fail.")
