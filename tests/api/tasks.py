"""Tasks that HTTP clients are offered, and some that they are not."""

from jobqueue import task


@task(expose={"api"}, queue_name="mail", tags=["shop"])
def charge(order_id: int, note: str = "") -> None:
    """Take the money for an order."""


@task(expose={"api"}, unique=["report"])
def report(report: str) -> None:
    """Make a report, once at a time."""


@task(expose={"api"}, unique={"key": ["index"], "on_conflict": "replace"})
def rebuild(index: str, deep: bool = False) -> None:
    """Rebuild an index; the last request counts."""


@task(expose={"staff"})
def for_staff() -> None:
    """Something for the admin only."""


@task
def hidden() -> None:
    """Nobody's business."""


CHARGE, REPORT, REBUILD = charge.module_path, report.module_path, rebuild.module_path
