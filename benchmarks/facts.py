"""The machine and settings behind the figures: without them no figure means anything."""

import os
import platform
from importlib.metadata import version

import psycopg

SETTINGS = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers")


def facts(url: str) -> dict[str, str]:
    """Return the facts, in the order they are printed."""
    found = {
        "cores": str(len(os.sched_getaffinity(0))),
        "Python": platform.python_version(),
        "Django": version("Django"),
        "psycopg": f"{version('psycopg')} ({psycopg.pq.__impl__})",
    }
    with psycopg.connect(url) as connection:
        for name in SETTINGS:
            row = connection.execute(f"SHOW {name}").fetchone()
            found["PostgreSQL" if name == "server_version" else name] = str(row[0]) if row else ""
    return found
