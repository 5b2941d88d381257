"""Middleware of the tests; `trace` holds what each has seen, in order."""

import threading

from asgiref.sync import iscoroutinefunction, markcoroutinefunction

from tests.engine.bench import leave

trace: list[str] = []


def outer(call_next):
    def run(context):
        trace.append("outer in")
        result = call_next(context)
        trace.append("outer out")
        return result

    return run


def inner(call_next):
    def run(context):
        trace.append("inner in")
        result = call_next(context)
        trace.append("inner out")
        return result

    return run


def both_ways(call_next):
    """Wrap coroutines and functions alike."""
    if not iscoroutinefunction(call_next):
        return inner(call_next)

    async def run(context):
        trace.append("async in")
        result = await call_next(context)
        trace.append("async out")
        return result

    return markcoroutinefunction(run)


both_ways.async_capable = True


def writing(call_next):
    def run(context):
        leave(context, "middleware")
        return call_next(context)

    return run


def failing(call_next):
    def run(context):
        call_next(context)
        raise OSError("in the middleware")

    return run


def doubling(call_next):
    return lambda context: 2 * call_next(context)


def threaded(call_next):
    def run(context):
        trace.append(str(threading.get_ident()))
        return call_next(context)

    return run


def skipping(call_next):
    return lambda context: "skipped"
