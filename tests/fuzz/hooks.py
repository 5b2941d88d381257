"""What must hold of every answer, beside what the document says: loaded by schemathesis."""

import atexit
import itertools
import json
import os
from collections import Counter
from pathlib import Path

import schemathesis

OPEN = ("/health/live/", "/health/ready/")
ANONYMOUS = bool(os.environ.get("FUZZ_ANONYMOUS"))
THERE = json.loads(Path(os.environ.get("FUZZ_THERE", os.devnull)).read_text() or "{}")
"""What there is, by the name of the path parameter that names it."""
TASK = "project.shop.tasks.book_delivery"
turn = itertools.count()
seen: Counter[str] = Counter()


@schemathesis.hook
def map_case(context, case):
    """Name what there is, mostly: what is made up is refused at the door."""
    number = next(turn)
    if case.meta is None or not case.meta.generation.mode.is_positive or number % 3 == 0:
        return case
    for name in case.path_parameters or {}:
        if THERE.get(name):
            case.path_parameters[name] = THERE[name][number % len(THERE[name])]
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"fuzz-{os.getpid()}-{number}"
    if isinstance(case.body, dict):
        for job in (case.body, *case.body.get("jobs", ())):
            if isinstance(job, dict) and "task" in job:
                job |= {"task": TASK, "args": [], "kwargs": {"sku": "cup", "quantity": 1}}
    return case


@schemathesis.check
def no_server_error(ctx, response, case):
    """Nothing fails on our side. That jobs are not done, as a probe says, is no failure of it."""
    assert response.status_code < 500 or case.path.endswith(OPEN), response.status_code


@schemathesis.check
def errors_are_problems(ctx, response, case):
    """Every error is a problem document, and says its own status."""
    seen[f"{response.status_code} {case.method} {case.path}"] += 1
    if response.status_code < 400:
        return
    kind = response.headers["content-type"][0]
    if response.status_code == 503 and "/health/ready/" in response.request.url:
        return
    assert kind == "application/problem+json", kind
    document = response.json()
    assert document["status"] == response.status_code
    assert document["code"]
    assert document["detail"]


@schemathesis.check
def nothing_is_open(ctx, response, case):
    """Without credentials nothing is answered but probes."""
    if ANONYMOUS and not case.path.endswith(OPEN):
        assert response.status_code in (400, 401, 404, 405, 411, 413, 415), response.status_code


@atexit.register
def tell() -> None:
    """Print how often each status was answered, by operation."""
    for line, count in sorted(seen.items(), key=lambda item: item[0].partition(" ")[::-1]):
        print(f"{count:6} × {line}")
