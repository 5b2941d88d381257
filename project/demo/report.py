"""Everything that the run's table shows, in one place."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from project.demo.audit import Violation, duplicates, missing
from project.demo.facts import Evidence, Kill, Thaw
from project.demo.recovery import interrupted_jobs, percentile, recovery_seconds
from project.demo.refusal import REFUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """evidence: what happened to orders and jobs. violations: what of it must not be.

    kills, thaws: what was done to the workers. deaths: of workers, as the live page counts them.
    enqueue_seconds: of each accepted POST.
    """

    evidence: Evidence
    violations: Sequence[Violation]
    kills: Sequence[Kill]
    thaws: Sequence[Thaw]
    enqueue_seconds: Sequence[float]
    deaths: int = 0

    def rows(self) -> list[tuple[str, str]]:
        """Return the table: a label and its figures, one row each."""
        return [*self._work(), *self._chaos(), *self._effects(), *self._times()]

    def _work(self) -> list[tuple[str, str]]:
        outcomes = Counter(attempt.outcome for attempt in self.evidence.attempts)
        retries = outcomes["failed"] + outcomes["timed_out"]
        return [
            ("orders", f"{len(self.evidence.orders)}"),
            ("jobs", f"{len(self.evidence.jobs)}"),
            ("attempts", f"{len(self.evidence.attempts)}"),
            ("retries", f"{retries} after failures, {outcomes['lost']} after interruptions"),
        ]

    def _chaos(self) -> list[tuple[str, str]]:
        kinds = Counter(kill.what for kill in self.kills)
        ways = Counter(thaw.refusal for thaw in self.thaws)
        refused = sum(count for way, count in ways.items() if way in REFUSED)
        how = ", ".join(f"{count} {way}" for way, count in ways.items()) or "nobody was thawed"
        lost = sum(attempt.outcome == "lost" for attempt in self.evidence.attempts)
        interrupted = f"{interrupted_jobs(self.evidence.attempts)} ({lost} attempts)"
        killed = f"{kinds['child']} workers, {kinds['supervisor']} supervisors"
        return [
            ("kills (SIGKILL)", f"{len(self.kills)}: {killed}"),
            ("workers that died", f"{self.deaths}"),
            ("jobs interrupted, run again", interrupted),
            ("frozen workers refused", f"{refused} of {len(self.thaws)} when thawed: {how}"),
        ]

    def _effects(self) -> list[tuple[str, str]]:
        effects = self.evidence.effects
        repeated = self.evidence.repeated
        doubled = ", ".join(f"{name} {duplicates(self.evidence, name)}" for name in effects)
        return [
            ("stock effects", f"{effects['stock'].total()}"),
            ("charge records", f"{effects['charge record'].total()}"),
            ("charges", deliveries_text(effects["charge"].total(), repeated["charge"])),
            ("mails", deliveries_text(effects["mail"].total(), repeated["mail"])),
            ("duplicates", doubled),
            ("lost", f"{missing(self.evidence)}"),
        ]

    def _times(self) -> list[tuple[str, str]]:
        killed_at = {kill.pid: kill.at for kill in self.kills}
        recovery = recovery_seconds(self.evidence.attempts, killed_at)
        return [
            ("kill to running again p50 / p95 / max", times_text(recovery, (50, 95, 100), "s", 1)),
            (
                "enqueue over HTTP p50 / p95 / p99",
                times_text(self.enqueue_seconds, (50, 95, 99), "ms", 1000),
            ),
        ]


def deliveries_text(done: int, repeated: int) -> str:
    """Return how often something was done outside, and how often its key prevented more."""
    return f"{done} ({repeated} repeated deliveries recognized by their key)"


def times_text(
    seconds: Sequence[float], percents: Sequence[float], unit: str, per_second: float
) -> str:
    """Return percentiles as text, "–" where nothing was measured."""
    if not seconds:
        return "–"
    values = [percentile(seconds, percent) * per_second for percent in percents]
    digits = 0 if unit == "ms" else 2
    return " / ".join(f"{value:.{digits}f}" for value in values) + f" {unit}"
