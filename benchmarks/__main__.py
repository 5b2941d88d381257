"""``python -m benchmarks`` (``make bench``): measure jobqueue beside what it is built on."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.django_loop import use_settings
from benchmarks.facts import facts
from project.servers import PostgresServer

SERVER_SETTINGS = {
    # No checkpoint by size or time falls into one side's lap; each lap starts after one.
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
}


def main() -> None:
    """Start a durable PostgreSQL, measure on it, print the report."""
    arguments = parse()
    with PostgresServer(durable=True, settings=SERVER_SETTINGS) as server:
        use_settings(server.url)
        # Only now can what needs Django be imported.
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        measure = api if arguments.what == "api" else speed
        text, found = measure(server.url, arguments)
    print(text)
    if arguments.json:
        document = json.dumps(found, indent=2, ensure_ascii=False)
        arguments.json.write_text(f"{document}\n")


def speed(url: str, arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return how many jobs a second, beside what we are built on."""
    from benchmarks import report, suite

    plan = plan_of(arguments)
    laps = suite.run(url, plan, arguments.only, say)
    found = facts(url)
    return report.as_text(found, plan, laps), report.as_json(found, plan, laps)


def api(url: str, arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return what enqueueing over HTTP takes, beside a bare view."""
    from benchmarks import api

    load = api.Load(
        seconds=120.0 * arguments.scale, processes=arguments.processes, threads=arguments.threads
    )
    measured = api.measure(load)
    found = facts(url)
    return api.as_text(found, load, measured), {"facts": found, "load": asdict(load), **measured}


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["speed", "api"], default="speed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=4, help="threads in each (default: 4)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="multiplies the numbers of jobs, or the seconds"
    )
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of measures")
    parser.add_argument("--json", type=Path, help="also write everything to this file")
    return parser.parse_args()


def plan_of(arguments: argparse.Namespace):  # type: ignore[no-untyped-def]
    """Return the plan: laps of some seconds on a small machine."""
    from benchmarks.suite import Plan

    return Plan(
        drain_jobs=int(100_000 * arguments.scale),
        insert_jobs=int(8_000 * arguments.scale),
        single_jobs=int(3_000 * arguments.scale),
        bulk_jobs=int(50_000 * arguments.scale),
        processes=arguments.processes,
        threads=arguments.threads,
        batch=200,
        rounds=arguments.rounds,
    )


def say(line: str) -> None:
    """Report progress, apart from the report."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
