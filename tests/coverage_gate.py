"""Fail when too few lines of jobqueue are covered.

Usage: coverage json -q -o FILE && python -m tests.coverage_gate FILE

coverage's own `fail_under` counts branches too once branches are measured; the promise is about
lines. The threshold is `minimum_line_coverage` in pyproject.toml.
"""

import json
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def main(report: str) -> int:
    """Print both figures, return 1 if the lines fall short."""
    minimum = tomllib.loads(PYPROJECT.read_text())["tool"]["jobqueue"]["minimum_line_coverage"]
    totals = json.loads(Path(report).read_text())["totals"]
    lines = percent(totals["covered_lines"], totals["num_statements"])
    branches = percent(totals["covered_branches"], totals["num_branches"])
    print(f"coverage of jobqueue/: {lines:.1f} % of lines, {branches:.1f} % of branches")
    if lines < minimum:
        print(f"FAILED: at least {minimum} % of lines must be covered")
        return 1
    return 0


def percent(covered: int, total: int) -> float:
    """Return a share in percent; all of nothing is 100."""
    return 100 * covered / total if total else 100.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
