"""Tasks that only the next release has."""

from jobqueue import task
from tests.process.tasks import leave_effect, note


@task(takes_context=True, max_attempts=1)
def write_anew(context):
    """Write one effect."""
    note(context)
    leave_effect(context)
