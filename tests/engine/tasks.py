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
