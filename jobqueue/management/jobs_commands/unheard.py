"""Names of queues that are most likely misspelled: refused, as the real queue would run on."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser

from django.core.management.base import CommandError

from jobqueue.engine.queues import has_live_jobs, known_queues
from jobqueue.management.jobs_commands.base import Shell


def add_force(parser: ArgumentParser) -> None:
    """Add the option under which nothing is refused."""
    parser.add_argument(
        "--force", action="store_true", help="also a queue that nothing has heard of yet"
    )


def refuse_unheard(shell: Shell, queue: str) -> None:
    """Raise CommandError if `queue` is not in QUEUES and has no live job."""
    known = known_queues(shell.backend)
    if queue in known or has_live_jobs(queue, shell.backend):
        return
    alike = difflib.get_close_matches(queue, known, n=1)
    hint = f" Did you mean {alike[0]}?" if alike else ""
    raise CommandError(
        f"Queue {queue!r} is not in QUEUES (known: {', '.join(known)}), and no job of it waits or "
        f"runs.{hint} --force does it all the same. Nothing was changed."
    )
