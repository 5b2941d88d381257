"""A task for a real process: it dies as soon as its COMMIT is done."""

import os
import signal

from django.db import transaction

from jobqueue import task
from tests.process.tasks import leave_effect, note


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@task(takes_context=True)
def die_after_commit(context):
    """Leave an effect; the first of two callbacks kills the process."""
    leave_effect(context)
    transaction.on_commit(die)
    transaction.on_commit(lambda: note(context, "second callback"))
