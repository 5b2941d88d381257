"""What a project's tasks look like."""

from asgiref.sync import sync_to_async
from django.db import IntegrityError, transaction

from jobqueue import GiveUp, Snooze, task
from tests.app.models import Effect

hooked: list[str] = []


@task
def ship(order):
    Effect.objects.create(job_id=order, label="shipped")
    return {"order": order}


@task
def pay(order, fails=False):
    """Leave an effect, enqueue the next step, and fail if told."""
    Effect.objects.create(job_id=order, label="paid")
    ship.enqueue(order)
    if fails:
        raise ValueError("card refused")


@task(takes_context=True, max_attempts=2, retry={"base": 60, "jitter": 0})
def flaky(context, order):
    Effect.objects.create(job_id=order, label=f"attempt {context.attempt}")
    raise ValueError(f"attempt {context.attempt}")


@task(takes_context=True, atomic=False)
def plain(context, order):
    Effect.objects.create(job_id=order, label="outside")
    with context.atomic():
        Effect.objects.create(job_id=order, label="inside")
        context.commit("committed")


@task(takes_context=True, atomic=False)
def stepping(context, order):
    context.step("charge", charge, order)
    if context.attempt == 1:
        raise ValueError("after the step")


def charge(order):
    Effect.objects.create(job_id=order, label="charged")
    return "ch_1"


@task
async def notify(order, fails=False):
    if fails:
        raise ValueError("no answer")
    await sync_to_async(Effect.objects.create)(job_id=order, label="notified")
    return "sent"


@task(atomic=False)
def broken(order):
    Effect.objects.create(pk=1, job_id=order)
    Effect.objects.create(pk=1, job_id=order)


@task
def swallowing(order):
    try:
        broken.func(order)
    except IntegrityError:
        pass


@task
def leaving_open(order):
    transaction.atomic().__enter__()
    Effect.objects.create(job_id=order, label="lost")


@task(atomic=False)
def leaving_open_plainly(order):
    leaving_open.func(order)
    raise ValueError("and fails")


@task
def snoozing(order):
    raise Snooze(60)


@task
def hopeless(order):
    raise GiveUp("no such order")


@task
def endless(n):
    endless.enqueue(n + 1)


@task
def hooking(order):
    Effect.objects.create(job_id=order, label="hooked")
    transaction.on_commit(lambda: hooked.append(order))


@task(takes_context=True, max_attempts=2, retry={"base": 0, "jitter": 0})
def reporting(context, order):
    """Say something in each of two attempts."""
    context.progress(context.attempt, 2, "trying")
    context.log.warning("attempt %d", context.attempt)
    if context.attempt == 1:
        raise ValueError("once more")


@task
def unstorable():
    return object()
