"""Fuzz the API over its document: `python -m tests.fuzz [--examples 100] [--database sqlite]`.

A site of its own, real servers, and three callers one after the other: one who may do everything,
one who may enqueue and sees their own jobs, and one without credentials. Fails for a 5xx, for a
status, a type or a shape that the document does not have, for invalid data that is accepted and
valid data that is refused as malformed, and for anything that is open.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from project.servers import PostgresServer
from tests.api.site import ROOT, Site, running_site

CHECKS = (
    "no_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
    "errors_are_problems",
    "nothing_is_open",
)
TASK = "project.shop.tasks.book_delivery"
SEEDS = 40


def main() -> int:
    """Run; return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=100, help="of each operation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--only", default="", help="a regular expression of addresses")
    options = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = ""
        if options.database == "postgres":
            url = stack.enter_context(PostgresServer()).url
        site = stack.enter_context(running_site(directory, url, "tests.fuzz.settings"))
        failed = [
            name
            for name, token in (("admin", site.admin_token), ("supplier", site.token), ("", ""))
            if fuzz(site, directory, name, token, options)
        ]
    print("failed for:", ", ".join(name or "anonymous" for name in failed) or "nobody")
    return int(bool(failed))


def fuzz(site: Site, directory: Path, name: str, token: str, options: argparse.Namespace) -> int:
    """Run schemathesis as one caller; return its exit status."""
    print(f"\n=== {name or 'without credentials'} ===", flush=True)
    there = directory / "there.json"
    there.write_text(json.dumps(seed(site, token) if token else {}))
    checks = [check for check in CHECKS if token or check != "negative_data_rejection"]
    argv = [
        str(Path(sys.executable).with_name("st")), "run", str(ROOT / "jobqueue/api/openapi.json"),
        "--url", site.url, "--max-examples", str(options.examples), "--seed", str(options.seed),
        "--checks", ",".join(checks), "--workers", "2", "--no-color", "--continue-on-failure",
        "--generation-database", "none", "--warnings", "off", "--suppress-health-check", "all",
    ]  # fmt: skip
    argv += ["-H", f"Authorization: Token {token}"] if token else []
    argv += ["--include-path-regex", options.only] if options.only else []
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
        "FUZZ_THERE": str(there),
        "FUZZ_ANONYMOUS": "" if token else "1",
    }
    return subprocess.run(argv, cwd=ROOT, env=environment).returncode


def seed(site: Site, token: str) -> dict[str, list[str]]:
    """Make jobs that succeed, die or wait; return what there is, by its path parameter."""
    jobs = []
    for n in range(SEEDS):
        body = {"task": TASK, "kwargs": {"sku": ("cup", "nothing")[n % 2], "quantity": 1}}
        if n % 4 > 1:
            body["run_after"] = "PT1H"
        key = f"seed-{token[:8]}-{n}"
        jobs.append(call(site, token, "jobs/", body, **{"Idempotency-Key": key})["id"])
    there = {"job_id": jobs, "name": ["stock", "mail"], "key": [TASK, "queue:stock"]}
    if token == site.admin_token:
        there["schedule_id"] = [s["id"] for s in call(site, token, "schedules/")["results"]]
        there["fingerprint"] = [
            e["fingerprint"] for e in call(site, token, "page/errors/")["results"]
        ]
    return there


def call(site: Site, token: str, path: str, body: Any = None, **headers: str) -> Any:
    """Send a request; return the JSON of its answer."""
    data = None if body is None else json.dumps(body).encode()
    if data:
        headers["Content-Type"] = "application/json"
    headers["Authorization"] = f"Token {token}"
    with urlopen(Request(f"{site.url}/{path}", data, headers=headers)) as response:
        return json.load(response)


if __name__ == "__main__":
    sys.exit(main())
