"""The library's own audit, `manage.py jobs audit`, run on the demo's database."""

import json
import subprocess
from collections.abc import Sequence

from project.demo.audit import Violation
from project.demo.crew import manage

EFFECTS = ("shop.StockMovement.job_id", "shop.Charge.job_id")
"""Fields of the demo's tables that say which job wrote a row."""
AUDIT_SECONDS = 30.0


def library_audit() -> list[Violation]:
    """Run the command and return what it found."""
    arguments = ["jobs", "audit", "--json"]
    for field in EFFECTS:
        arguments += ["--effects", field]
    try:
        finished = subprocess.run(
            manage(*arguments), capture_output=True, text=True, timeout=AUDIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return [Violation("engine", f"jobs audit did not end within {AUDIT_SECONDS:g} s")]
    return read_findings(finished.returncode, finished.stdout, finished.stderr)


def read_findings(code: int, output: str, errors: str) -> list[Violation]:
    """Return the violations in the command's JSON; what cannot be read is one, too."""
    try:
        answer = json.loads(output)
        listed: Sequence[object] = answer["violations"]
    except (ValueError, KeyError, TypeError):
        return [
            Violation("engine", f"jobs audit ended with {code}: {errors[-500:] or output[-500:]}")
        ]
    found = [Violation("engine", _sentence(violation)) for violation in listed]
    if code and not found:
        found.append(Violation("engine", f"jobs audit ended with {code} and named nothing"))
    return found


def _sentence(violation: object) -> str:
    if not isinstance(violation, dict):
        return str(violation)
    check, job, detail = (violation.get(key) for key in ("check", "job_id", "detail"))
    return f"{check} of job {job}: {detail}"
