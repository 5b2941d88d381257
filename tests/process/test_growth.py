"""What a worker process keeps does not grow with the jobs that it has run (objects, not memory)."""

from contextlib import suppress

from tests.process.tasks import (
    nothing_but_count_objects,
    nothing_but_litter,
    nothing_but_litter_in_coroutine,
)
from tests.waiting import PATIENCE_SECONDS, wait_until

JOBS = 200
"""Jobs of each kind, of which half fail."""
SLACK = 30
"""Objects of one type that may be there by chance: far fewer than jobs."""


def test_nothing_is_kept_of_jobs_that_have_ended(site):
    """All of them log and report; those that fail have large locals in their frames."""
    site.runworker()
    before = census()
    for task in (nothing_but_litter, nothing_but_litter_in_coroutine):
        task.enqueue_many([task.bind(number) for number in range(JOBS)])
    site.wait_until_done()
    found: list[dict[str, tuple[int, int]]] = []

    def has_settled() -> bool:  # the last ends and reports are written a moment later
        found.append(growth(before, census()))
        return not found[-1]

    with suppress(AssertionError):  # the next one says more
        wait_until(has_settled, "a process that keeps nothing")
    assert found[-1] == {}


def census() -> dict[str, int]:
    """Return what lives in the worker process, by type, and what its collections hold."""
    result = nothing_but_count_objects.enqueue().wait(PATIENCE_SECONDS)
    counted: dict[str, int] = result.return_value
    return counted


def growth(before: dict[str, int], after: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Return what there is more of, beyond what may be by chance: before, and after."""
    return {
        name: (before.get(name, 0), count)
        for name, count in after.items()
        if count > before.get(name, 0) + SLACK
    }
