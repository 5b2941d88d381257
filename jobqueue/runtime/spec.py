"""What a supervisor tells a child that it spawns: plain values, passed as one JSON argument."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, field
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """One worker process. identity is drawn by the supervisor, which so knows it before the
    child has written a row. alone: runs one suspect in one slot, then exits.
    until_empty: somebody waits for the queues to be empty, so look often. max_jobs,
    max_memory_bytes, reload: when it makes room for a new one (`jobqueue.runtime.recycling`).
    """

    identity: str
    supervisor: str
    name: str
    backend: str
    queues: tuple[str, ...]
    threads: int
    direct: bool
    control_fd: int
    ledger_fd: int
    ledger_capacity: int
    log_format: str
    log_level: str
    alone: bool = False
    until_empty: bool = False
    max_jobs: int | None = None
    max_memory_bytes: int | None = None
    reload: bool = False
    strict_order: bool = False
    sys_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    settings_module: str = field(
        default_factory=lambda: os.environ.get("DJANGO_SETTINGS_MODULE", "")
    )

    @property
    def identity_id(self) -> UUID:
        return UUID(self.identity)

    def dump(self) -> str:
        """Return the JSON text for the child's command line."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> ChildSpec:
        """Return the spec in a child's command line."""
        values = json.loads(text)
        values["queues"] = tuple(values["queues"])
        values["sys_path"] = tuple(values["sys_path"])
        return cls(**values)
