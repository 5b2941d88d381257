"""python -m benchmarks.pages: how long the pages take beside millions of jobs.

Starts a PostgreSQL of its own, fills it (`benchmarks.crowd`), opens every list, filter, search,
detail, older and newer page of the admin some times, asks what the live page asks, and prints
milliseconds, queries, and which big tables any statement reads as a whole. Exits 1 if a page takes
a second, eleven queries (one of the live page's 41), or a whole table.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from project.servers import PostgresServer

BIG = ("jobqueue_job", "jobqueue_attempt", "jobqueue_jobtag")
MAX_SECONDS, MAX_QUERIES, LIVE_MAX_QUERIES = 1.0, 10, 40
OLDER = re.compile(r'rel="next" href="([^"]+)"')
NEWER = re.compile(r'rel="prev" href="([^"]+)"')
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "work_mem": "4MB"}


@dataclass(frozen=True, slots=True)
class Look:
    """One page: the slowest of its openings, its queries, and tables that were read as a whole."""

    name: str
    seconds: float
    queries: int
    whole: list[str]
    size: int
    older: str
    newer: str
    most_queries: int = MAX_QUERIES

    @property
    def is_fine(self) -> bool:
        return self.seconds < MAX_SECONDS and self.queries <= self.most_queries and not self.whole


LISTS = {
    "jobs": "job/",
    "jobs, any state": "job/?state=any",
    **{f"jobs, {state}": f"job/?state={state}" for state in (
        "ready", "running", "scheduled", "retrying", "blocked", "dead", "cancelled", "succeeded")},
    "jobs, queue": "job/?queue=mail",
    "jobs, queue, succeeded": "job/?queue=mail&state=succeeded",
    "jobs, task": "job/?q=task:shop.tasks.task7",
    "jobs, unknown task": "job/?q=task:nobody.has.it",
    "jobs, unknown task, any state": "job/?q=task:nobody.has.it&state=any",
    "jobs, with error": "job/?error=yes",
    "jobs, past hour": "job/?period=1h",
    "jobs, past 30 days, succeeded": "job/?period=30d&state=succeeded",
    "jobs, schedule": "job/?q=schedule:nightly",
    "jobs, tag": "job/?q=tag:order:42&state=any",
    "jobs, text": "job/?q=order",
    "jobs, argument": "job/?q=args.0:77",
    "jobs, text that nothing has": "job/?q=nothing-has-this",
    "jobs, worker": "job/?q=worker:worker-3",
    "dead letters": "deadletter/",
    "dead letters, error": "deadletter/?q=error:Error7",
    "dead letters, past hour": "deadletter/?period=1h",
    "dead letters, poison": "deadletter/?reason=poison",
    "attempts": "attempt/",
    "attempts, failed": "attempt/?outcome=failed",
    "attempts, lost": "attempt/?outcome=lost",
    "attempts, past hour": "attempt/?period=1h",
    "tags": "jobtag/",
    "tags, one": "jobtag/?q=order:42",
    "errors": "errorgroup/",
    "queues": "queue/",
    "queue": "queue/mail/change/",
    "workers": "worker/",
    "actions": "action/",
    "bulk operations": "bulkoperation/",
    "schedules": "schedule/",
    "limits": "limit/",
}  # fmt: skip

LIVE = {
    "live page": "",
    "live page: stats": "api/v1/stats/?period=3600",
    "live page: stats, a day": "api/v1/stats/?period=86400",
    "live page: throughput": "api/v1/page/throughput/?period=3600&by=outcome",
    "live page: latency": "api/v1/page/latency/?period=3600",
    "live page: errors": "api/v1/page/errors/?period=3600&order=count&limit=20",
    "live page: findings": "api/v1/page/findings/",
    "live page: queues": "api/v1/queues/",
    "live page: workers": "api/v1/workers/",
    "live page: jobs": "api/v1/jobs/",
    "live page: dead jobs": "api/v1/jobs/?q=state:dead",
}
"""What the overview asks for as it opens, and a list of jobs. Answers are kept for a second, so it
is the first that counts."""


def looks(client: Any, connection: Any, times: int = 3) -> Iterator[Look]:
    """Open every page; of each list with more than a page also the older and the newer one."""
    at = "/admin/jobqueue/"
    for name, address in LISTS.items():
        url = at + address
        yield (first := look(client, connection, name, url, times))
        if first.older:
            url = url.partition("?")[0] + first.older
            yield (second := look(client, connection, f"{name}: older", url, times))
            if second.newer:
                url = url.partition("?")[0] + second.newer
                yield look(client, connection, f"{name}: newer", url, times)
    for name, address in details().items():
        yield look(client, connection, name, at + address, times)


def live_looks(client: Any, connection: Any) -> Iterator[Look]:
    """Ask what the live page asks."""
    for name, address in LIVE.items():
        found = look(client, connection, name, f"/jobqueue/{address}", 0)
        yield replace(found, most_queries=LIVE_MAX_QUERIES)


def details() -> dict[str, str]:
    """Return the pages of single rows."""
    from jobqueue.models import Attempt, ErrorGroup, Job, Worker

    found = {
        f"job, {state}": f"job/{Job.objects.filter(state=state).first().pk}/change/"
        for state in ("ready", "running", "dead", "succeeded")
    }
    group = ErrorGroup.objects.first().pk
    return found | {
        "attempt": f"attempt/{Attempt.objects.order_by('-pk')[0].pk}/change/",
        "worker": f"worker/{Worker.objects.first().pk}/change/",
        "error": f"errorgroup/{group}/change/",
        "preview: requeue an error": f"job/matching/requeue/?filter=state:dead+fingerprint:{group}",
    }


def look(client: Any, connection: Any, name: str, url: str, times: int) -> Look:
    """Open a page for its queries and their plans, and `times` more for how long it takes.

    times: 0 for as long as the first opening took.
    """
    from django.test.utils import CaptureQueriesContext

    began = time.perf_counter()
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(url)
    slowest = 0.0 if times else time.perf_counter() - began
    statements = [query["sql"] for query in captured]  # the next request forgets them
    assert answer.status_code == 200, (url, answer.status_code)
    for _ in range(times):
        began = time.perf_counter()
        client.get(url)
        slowest = max(slowest, time.perf_counter() - began)
    text = answer.content.decode()
    return Look(
        name=name,
        seconds=slowest,
        queries=len(statements),
        whole=whole_reads(connection, statements),
        size=len(text),
        older=link(OLDER, text),
        newer=link(NEWER, text),
    )


def link(pattern: re.Pattern[str], text: str) -> str:
    """Return the address of an older or newer page, "" if there is none."""
    found = pattern.search(text)
    return found[1].replace("&amp;", "&") if found else ""


def whole_reads(connection: Any, statements: list[str]) -> list[str]:
    """Return which big tables are read as a whole by any of the statements, by their plans."""
    found = set()
    for sql in statements:
        if sql.startswith(("SELECT", "WITH")) and any(table in sql for table in BIG):
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN {sql}")
                plan = "\n".join(line for (line,) in cursor.fetchall())
            found |= {table for table in BIG if re.search(rf"Seq Scan on {table}\b", plan)}
    return sorted(found)


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.pages", description=__doc__)
    parser.add_argument("--finished", type=int, default=5_000_000)
    parser.add_argument("--live", type=int, default=200_000)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    with PostgresServer(durable=False, settings=SETTINGS) as server:
        os.environ |= {
            "DATABASE_URL": server.url,
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "ALLOWED_HOSTS": "testserver",
            "LOG_LEVEL": "ERROR",
        }
        import django

        django.setup()
        return measured(arguments)


def measured(arguments: argparse.Namespace) -> int:
    """Fill the database of the settings and print a line a page."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from benchmarks.crowd import fill

    call_command("migrate", verbosity=0)
    began = time.monotonic()
    fill(connection, arguments.finished, arguments.live)
    print(f"filled in {time.monotonic() - began:.0f} s", flush=True)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    print(f"vacuumed after {time.monotonic() - began:.0f} s", flush=True)
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("bench"))
    print(f"{'page':<44}{'ms':>7}{'queries':>9}{'kB':>6}  reads as a whole")
    is_fine = True
    for one in chain(looks(client, connection, arguments.times), live_looks(client, connection)):
        mark = "" if one.is_fine else "  <<<"
        is_fine = is_fine and one.is_fine
        print(
            f"{one.name:<44}{one.seconds * 1_000:>7.0f}{one.queries:>9}{one.size // 1_000:>6}  "
            f"{', '.join(one.whole)}{mark}",
            flush=True,
        )
    return int(not is_fine)


if __name__ == "__main__":
    sys.exit(main())
