"""Tasks of the tests of unique jobs."""

from datetime import timedelta

from jobqueue import Unique, task


@task(unique=True)
def sync(account, full=False, *, since=None):
    return [account, full, since]


@task(unique=["account"])
def mail(account, text=""):
    return [account, text]


@task(unique=lambda account, **rest: f"account:{account}" if account else None)
def index(account, text=""):
    return [account, text]


@task(unique=Unique(until="done"))
def export(account):
    return account


@task(unique=Unique(window=timedelta(minutes=1)))
def digest(account):
    return account


@task(unique={"key": ["account"], "on_conflict": "replace"}, expires=timedelta(hours=1))
def push(account, text=""):
    return [account, text]


@task(unique=Unique(key=["account"], on_conflict="reschedule"))
def rebuild(account, text=""):
    return [account, text]


@task(unique=True, takes_context=True)
def with_context(context, *args, **kwargs):
    return [args, kwargs]


@task
def plain(n=0):
    return n


@task(unique=True, atomic=False)
async def fetch(url):
    return url


results = []
"""What jobs that enqueue others got."""


@task(unique=Unique(key=lambda until, n=0: until))
def again(until, n=0):
    """Enqueue another job of the same key while this one runs, once."""
    if n == 0:
        rules = Unique(key=lambda until, n=0: until, until=until)
        results.append(again.using(unique=rules).enqueue(until, 1))
    return n
