"""Middleware around each job, like Django's around a request.

A middleware is a factory ``factory(call_next) -> callable`` taking and passing on the job's
context: ``def timing(call_next): def run(context): …; return call_next(context)``. One with
``async_capable = True`` is given a coroutine function for ``async def`` tasks and must return
one; others run around them in the job's thread for sync code. Outermost first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.utils.module_loading import import_string

from jobqueue.engine.context import JobContext

Factory = Callable[[Callable[..., Any]], Callable[..., Any]]


class Middleware:
    """The middleware of one process, imported once."""

    def __init__(self, paths: tuple[str, ...] = ()) -> None:
        self._factories: list[Factory] = [import_string(path) for path in paths]

    def run(self, context: JobContext, function: Callable[[], Any]) -> Any:
        """Call `function` inside the middleware."""
        if not self._factories:
            return function()
        chain: Callable[[JobContext], Any] = lambda _context: function()  # noqa: E731
        for factory in reversed(self._factories):
            chain = factory(chain)
        return chain(context)

    async def run_async(self, context: JobContext, function: Callable[[], Awaitable[Any]]) -> Any:
        """Await `function` inside the middleware."""
        if not self._factories:
            return await function()

        async def innermost(_context: JobContext) -> Any:
            return await function()

        chain: Callable[..., Any] = innermost
        for factory in reversed(self._factories):
            chain = _wrapped(factory, chain)
        return await chain(context)


def _wrapped(factory: Factory, inner: Callable[..., Any]) -> Callable[..., Any]:
    if getattr(factory, "async_capable", False):
        markcoroutinefunction(inner) if not iscoroutinefunction(inner) else None
        return factory(inner)
    return sync_to_async(factory(async_to_sync(inner)))
