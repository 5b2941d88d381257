"""Tasks of these tests, at module level as tasks must be."""

import functools

from jobqueue import Backoff, task


def doubling(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return 2 * function(*args, **kwargs)

    return wrapper


@task
def add(a, b=0):
    return a + b


@task(queue_name="mail", priority=10, max_attempts=8, timeout=30, takes_context=True)
def send(context, address, *, subject="hello"):
    return f"{subject} {address}"


@task
async def fetch(url):
    return url.upper()


@task(atomic=False, on_crash="bury", expose={"staff"}, retry=Backoff(base=1), tags=["report"])
def report(*args, **kwargs):
    return {"args": list(args), "kwargs": kwargs}


@task
@doubling
def doubled(n):
    return n


@task
def names(task=None, job=None, self=None, args=None, queue=None, name=None, func=None):
    return [task, job, self, args, queue, name, func]


@task(takes_context=True)
def names_with_context(context, task=None, self=None, args=None, kwargs=None):
    return [task, self, args, kwargs]


@task
def echo(value):
    return value


@task
def fail(message="on purpose"):
    raise ValueError(message)
