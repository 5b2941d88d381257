"""Identifiers: UUIDv7 for jobs, random UUIDs for processes.

A job's id is drawn by the process that enqueues it, so it exists before the row does and can
never belong to another job after a restore or a failover (a sequence can hand a number out
twice). Its first 48 bits are the time, for index locality only: no rule reads it (RFC 9562,
section 5.7).
"""

import os
import time
from uuid import UUID, uuid4


def new_job_id() -> UUID:
    """Return a new UUIDv7: 48 bits of Unix milliseconds, 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF
    tail = int.from_bytes(os.urandom(10), "big")
    value = milliseconds << 80 | tail
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


def new_identity() -> UUID:
    """Return the identity of a process: 122 random bits, never reused, never a sequence."""
    return uuid4()


SESSION_PREFIX = "jobqueue:"


def session_name(identity: UUID) -> str:
    """Return the application_name that every database session of a worker bears."""
    return f"{SESSION_PREFIX}{identity.hex}"


def lock_key(identity: UUID) -> int:
    """Return the advisory lock key (signed 64-bit) by which a worker's beat session is known."""
    return int.from_bytes(identity.bytes[:8], "big", signed=True)
