"""What must hold of every answer, beside what the document says: loaded by schemathesis."""

import os
import random
from pathlib import Path

import schemathesis

OPEN = ("/health/live/", "/health/ready/")
ANONYMOUS = bool(os.environ.get("FUZZ_ANONYMOUS"))
IDS = Path(os.environ.get("FUZZ_IDS", os.devnull)).read_text().split()
"""Jobs that there are."""


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Name jobs that there are, mostly: what is made up meets nothing but 404."""
    for name in path_parameters or {}:
        if name in ("id", "job_id") and IDS and random.random() < 0.7:
            path_parameters[name] = random.choice(IDS)
    return path_parameters


@schemathesis.check
def errors_are_problems(ctx, response, case):
    """Every error is a problem document, and says its own status."""
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
