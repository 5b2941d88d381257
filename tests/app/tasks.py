"""Tasks of the tests; each leaves Effect rows."""

from jobqueue import task
from tests.app.models import Effect


@task(takes_context=True)
def record(context, label=""):
    """Leave one effect in the job's own transaction."""
    Effect.objects.create(job_id=str(context.job_id), label=label)


@task(takes_context=True)
def record_then_fail(context, label=""):
    """Leave an effect that must be rolled back."""
    Effect.objects.create(job_id=str(context.job_id), label=label)
    raise ValueError("fails on purpose")
