"""What one ``runworker`` is to run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """What a supervisor is to run; the command line, checked."""

    backend: str
    queues: tuple[str, ...]
    processes: int = 1
    threads: int = 4
    maintenance: bool = True
    until_empty: bool = False
    max_jobs: int | None = None
    max_memory_bytes: int | None = None
    reload: bool = False
    health_file: Path | None = None
    name: str = ""
    log_format: str = "auto"
    log_level: str = "info"
    strict_order: bool = False
