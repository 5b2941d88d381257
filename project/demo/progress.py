"""What people see while the demo runs: a live panel on a terminal, plain lines elsewhere."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.table import Table

LINE_SECONDS = 2.0
"""Time between two plain lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Where the run is. states: how many of its jobs are in each state."""

    accepted: int
    orders: int
    states: Mapping[str, int]
    kills: int
    thaws: int

    def rows(self) -> list[tuple[str, str]]:
        """Return labels and figures, in a constant order and number."""
        done = self.states.get("succeeded", 0)
        waiting = sum(self.states.get(state, 0) for state in ("ready", "scheduled", "blocked"))
        return [
            ("orders", f"{self.accepted}/{self.orders}"),
            ("jobs done", f"{done}/{sum(self.states.values())}"),
            ("running", f"{self.states.get('running', 0)}"),
            ("waiting", f"{waiting}"),
            ("retrying", f"{self.states.get('retrying', 0)}"),
            ("dead", f"{self.states.get('dead', 0)}"),
            ("kills", f"{self.kills}"),
            ("thawed", f"{self.thaws}"),
        ]


class Progress:
    """Show snapshots and single events. Use as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        self._last_line = 0.0

    def __enter__(self) -> "Progress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print one event as a line, above the panel if there is one."""
        self.console.print(text, soft_wrap=True, highlight=False, markup=False)

    def show(self, snapshot: Snapshot) -> None:
        """Show where the run is."""
        if self._live:
            self._live.update(panel(snapshot))
        elif time.monotonic() - self._last_line >= LINE_SECONDS:
            self._last_line = time.monotonic()
            self.say(" · ".join(f"{label} {figure}" for label, figure in snapshot.rows()))


def panel(snapshot: Snapshot) -> Table:
    """Return the live panel."""
    table = Table(show_header=True, header_style="bold")
    for label, _ in snapshot.rows():
        table.add_column(label, justify="right")
    table.add_row(*(figure for _, figure in snapshot.rows()))
    return table
