"""Tasks that staff may submit and plan, and one that they may not."""

from jobqueue import task


@task(expose={"staff"})
def offered(number=0):
    return number


@task
def not_offered():
    """Is for the project's own code."""
