"""The report: a table to read, and the same as JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmarks.race import Lap
from benchmarks.suite import CONTESTS, Plan, rates


def ratios(medians: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return each contest that was run whole: its ratio, and the ratio to reach."""
    return [
        {**asdict(contest), "ratio": medians[contest.ours] / medians[contest.other]}
        for contest in CONTESTS
        if contest.ours in medians and contest.other in medians
    ]


def as_json(facts: dict[str, str], plan: Plan, laps: dict[str, list[Lap]]) -> dict[str, Any]:
    """Return everything that was measured, as JSON can hold it."""
    medians = rates(laps)
    return {
        "facts": facts,
        "plan": asdict(plan),
        "measures": {
            name: {
                "jobs": found[0].jobs,
                "seconds": [lap.seconds for lap in found],
                "jobs_per_second": medians[name],
            }
            for name, found in laps.items()
        },
        "ratios": ratios(medians),
    }


def as_text(facts: dict[str, str], plan: Plan, laps: dict[str, list[Lap]]) -> str:
    """Return the report for a terminal."""
    medians = rates(laps)
    lines = [
        "",
        ", ".join(f"{name} {value}" for name, value in facts.items()),
        f"{plan.processes} processes × {plan.threads} threads, batch {plan.batch}; "
        f"median of {plan.rounds} interleaved rounds",
        "",
        f"{'measure':<28}{'jobs':>10}{'jobs/s':>12}{'slowest … fastest':>24}",
    ]
    for name, found in laps.items():
        each = sorted(lap.rate for lap in found)
        spread = f"{each[0]:,.0f} … {each[-1]:,.0f}"
        lines.append(f"{name:<28}{found[0].jobs:>10,}{medians[name]:>12,.0f}{spread:>24}")
    lines += ["", f"{'ratio':<28}{'':>10}{'measured':>12}{'wanted':>24}"]
    for row in ratios(medians):
        wanted = f"at least {row['goal']}" if row["goal"] else ""
        lines.append(f"{row['name']:<28}{'':>10}{row['ratio']:>12.2f}{wanted:>24}")
    return "\n".join(lines)
