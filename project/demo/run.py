"""One run: bring the processes up, attack them under load, let them finish, take stock."""

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from django.db.models import Count

from jobqueue.models import Worker
from project.demo import crew
from project.demo import plan as figures
from project.demo.audit import Violation, audit
from project.demo.background import Background
from project.demo.evidence import Baseline, deaths, gather, run_jobs, unfinished_jobs
from project.demo.fleet import Fleet
from project.demo.freezing import Freezer
from project.demo.killing import Killer, Spared
from project.demo.library_audit import library_audit
from project.demo.load import Load
from project.demo.options import DemoError
from project.demo.plan import Plan
from project.demo.progress import Progress, Snapshot
from project.demo.refusal import REFUSED
from project.demo.report import Report

TICK_SECONDS = 0.25


class Run:
    """The parts of one run and their order. Every wait in it is bounded."""

    def __init__(
        self, plan: Plan, fleet: Fleet, progress: Progress, *, web_port: int, checkpoints: Path
    ) -> None:
        self._plan = plan
        self._fleet = fleet
        self._progress = progress
        self._baseline = Baseline.now()
        self._launcher = os.getppid()
        spared = Spared()
        options = plan.options
        self._load = Load(
            port=web_port,
            orders=options.orders,
            seconds=plan.load_seconds,
            posters=figures.POSTERS,
            marked=plan.marked,
        )
        self._killer = Killer(
            fleet,
            crew.SUPERVISORS,
            spared,
            every=options.kill_every,
            least_workers=figures.LEAST_WORKERS,
            seed=options.seed,
        )
        self._freezer = Freezer(
            fleet,
            crew.SUPERVISORS,
            spared,
            directory=checkpoints,
            wanted=min(plan.freezes, len(plan.marked)),
        )
        self._said: set[str] = set()
        excess = max(0.0, plan.load_seconds - figures.LOAD_SECONDS)
        self._end = time.monotonic() + figures.TOTAL_SECONDS + excess

    def wait_until_ready(self) -> None:
        """Wait for workers and web to be there. Raise DemoError if that takes too long."""
        wanted = figures.SUPERVISORS * figures.PROCESSES
        workers = Worker.objects.filter(
            kind="worker", dead=False, started_at__gte=self._baseline.at
        )
        if not self._wait(lambda: workers.count() >= wanted, figures.READY_SECONDS):
            raise DemoError(f"Only {workers.count()} of {wanted} workers came up.")
        self._load.warm_up()

    def attack(self) -> None:
        """Post the orders; meanwhile kill, freeze and thaw; then wait for the last job."""
        with ExitStack() as stack:
            load = self._background(stack, "load", self._load.run)
            killer = self._background(stack, "killer", self._killer.run)
            freezer = self._background(stack, "freezer", self._freezer.run)
            self._wait(
                lambda: not load.is_running(),
                self._plan.load_seconds + figures.LATE_LOAD_SECONDS,
            )
            self._progress.say("No more orders; waiting for the last jobs.")
            self._wait(
                lambda: len(self._killer.kills) >= self._plan.least_kills, figures.KILL_SECONDS
            )
            killer.stop()
            self._wait(lambda: not freezer.is_running(), figures.FREEZE_SECONDS)
            self._wait(lambda: not unfinished_jobs(self._baseline), figures.DRAIN_SECONDS)
            for background in (load, killer, freezer):
                background.is_running()  # raises what went wrong in it

    def report(self) -> Report:
        """Read what happened, audit it, and let the library audit itself."""
        evidence = gather(
            self._baseline,
            crew.ledger_of(self._fleet),
            accepted=self._load.result.accepted,
            refused=self._load.result.refused,
        )
        violations = [*self._own_violations(), *audit(evidence), *library_audit()]
        return Report(
            evidence=evidence,
            violations=violations,
            kills=self._killer.kills,
            thaws=self._freezer.thaws,
            enqueue_seconds=self._load.result.seconds,
            deaths=deaths(self._baseline),
        )

    def tick(self) -> None:
        """Look after the processes and show how far things are."""
        if os.getppid() != self._launcher:
            raise DemoError("The process that started this one is gone.")
        self._fleet.tend()
        self._say_news()
        self._progress.show(self._snapshot())

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = min(time.monotonic() + seconds, self._end)
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.tick()
            time.sleep(TICK_SECONDS)
        self.tick()
        return True

    def _background(self, stack: ExitStack, name: str, work) -> Background:
        background = Background(name, work)
        stack.callback(background.stop)
        return background

    def _own_violations(self) -> list[Violation]:
        """Return what the demo itself did not manage to do, or to see refused."""
        found = []
        result = self._load.result
        unposted = self._plan.options.orders - len(result.accepted) - len(result.refused)
        if unposted:
            found.append(Violation("refused", f"{unposted} orders could not be posted in time"))
        kills = len(self._killer.kills)
        if kills < self._plan.least_kills:
            text = f"only {kills} kills were possible, {self._plan.least_kills} are the least"
            found.append(Violation("chaos", text))
        if not self._freezer.thaws:
            found.append(Violation("zombie", "no worker could be frozen inside a marked job"))
        for thaw in self._freezer.thaws:
            if thaw.refusal not in REFUSED:
                text = f"the thawed worker of order {thaw.order_id} was {thaw.refusal}"
                found.append(Violation("zombie", text))
        return found

    def _say_news(self) -> None:
        news = [f"kill -9 {kill.pid} ({kill.what})" for kill in self._killer.kills]
        news += [
            f"thawed {thaw.pid} after {thaw.frozen_seconds:.1f} s: {thaw.refusal}"
            for thaw in self._freezer.thaws
        ]
        for text in news:
            if text not in self._said:
                self._progress.say(text)
        self._said.update(news)

    def _snapshot(self) -> Snapshot:
        rows = run_jobs(self._baseline).values_list("state").annotate(Count("pk"))
        return Snapshot(
            accepted=len(self._load.result.accepted),
            orders=self._plan.options.orders,
            states=Counter(dict(rows)),
            kills=len(self._killer.kills),
            thaws=len(self._freezer.thaws),
        )
