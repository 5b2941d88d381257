"""The table and the verdict at the end of a run."""

from rich.box import ASCII, ROUNDED
from rich.console import Console
from rich.table import Table

from project.demo.report import Report

MAX_VIOLATIONS = 40
"""Violations printed one by one; the rest is counted."""


def print_report(console: Console, report: Report) -> None:
    """Print what happened, then every violation by name, or that there is none."""
    table = Table(
        title="What happened",
        title_justify="left",
        show_header=False,
        box=ROUNDED if console.is_terminal else ASCII,
    )
    table.add_column(no_wrap=True)
    table.add_column()
    for label, figures in report.rows():
        table.add_row(label, figures)
    console.print()
    console.print(table)
    print_verdict(console, report)


def print_verdict(console: Console, report: Report) -> None:
    """Print the audit's answer. Each violation is one unbroken line, also for grep."""
    if not report.violations:
        text = "Audit passed: every order has each effect exactly once, nothing is lost."
        console.print(text, style="green", soft_wrap=True)
        return
    count = len(report.violations)
    console.print(f"Audit FAILED: {count} violations", style="bold red", soft_wrap=True)
    for violation in report.violations[:MAX_VIOLATIONS]:
        console.print(f"  {violation}", style="red", soft_wrap=True, markup=False)
    if count > MAX_VIOLATIONS:
        console.print(f"  … and {count - MAX_VIOLATIONS} more", style="red")
