"""How a task says from inside, before its commit, where it is: a file that the demo waits for.

A file and not a row, because whatever the task writes to the database is seen only after the
commit, and the moment that matters comes before it.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Process `pid` runs job `job_id` under `fence`, and has written its effect."""

    pid: int
    job_id: str
    order_id: int
    fence: int


def linger(checkpoint: Checkpoint) -> None:
    """Report `checkpoint` and stay for CHECKPOINT_SECONDS; do nothing without CHECKPOINT_DIR."""
    if not settings.CHECKPOINT_DIR:
        return
    path = Path(settings.CHECKPOINT_DIR, f"{checkpoint.job_id}-{checkpoint.fence}.json")
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(checkpoint)), encoding="utf-8")
    os.replace(draft, path)  # a reader sees all of it or nothing
    time.sleep(settings.CHECKPOINT_SECONDS)


def take_reports(directory: Path) -> Iterator[Checkpoint]:
    """Yield what was reported in `directory` since the last call, and remove it."""
    for path in sorted(directory.glob("*.json")):
        report = Checkpoint(**json.loads(path.read_text(encoding="utf-8")))
        path.unlink()
        yield report
