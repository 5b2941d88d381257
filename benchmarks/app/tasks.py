"""The jobs that are measured."""

from benchmarks.app.models import Row
from jobqueue import task


@task(atomic=False)
def noop() -> None:
    """Do nothing: what remains is the queue's own cost, finished in batches."""


@task(expose={"api"})
def insert_row(number: int) -> None:
    """Write one row in the transaction that also finishes the job: exactly once."""
    Row.objects.create(number=number, who="job")
