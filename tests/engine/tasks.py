"""Tasks whose body a test supplies: `Bench.enqueue` gives it a name that travels in the row."""

from collections.abc import Callable
from typing import Any

from jobqueue import task

bodies: dict[str, Callable[..., Any]] = {}


@task(takes_context=True)
def atomic_job(context, body, *args, **kwargs):
    return bodies[body](context, *args, **kwargs)


@task(takes_context=True, atomic=False)
def plain_job(context, body, *args, **kwargs):
    return bodies[body](context, *args, **kwargs)


@task(takes_context=True)
async def async_job(context, body, *args, **kwargs):
    return await bodies[body](context, *args, **kwargs)


asked_for_delays: list[tuple[int, str]] = []
"""What `patience` was asked: the number of the retry, and the class of what ended the attempt."""


def patience(number, exception=None):
    asked_for_delays.append((number, type(exception).__name__))
    return 60.0


@task(takes_context=True, atomic=False, retry=patience)
def patient_job(context, body, *args, **kwargs):
    return bodies[body](context, *args, **kwargs)
