"""What happened, read from the three places that know: the database, the ledger, the load."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models.functions import Now

from jobqueue.models import Attempt, Job, Worker
from project.demo.facts import FINISHED, AttemptFact, Evidence, JobFact
from project.gateway.ledger import read_ledger
from project.shop.models import Charge, Order, StockMovement


@dataclass(frozen=True, slots=True)
class Baseline:
    """Where the run begins in a database that may already hold other orders and jobs."""

    order_id: int
    at: datetime

    @classmethod
    def now(cls) -> "Baseline":
        """Return the present, on the database's clock. There must be a user to ask about."""
        newest = Order.objects.order_by("-pk").values_list("pk", flat=True).first()
        at = get_user_model().objects.values_list(Now(), flat=True)[0]
        return cls(newest or 0, at)


def unfinished_jobs(baseline: Baseline) -> int:
    """Return how many of the run's jobs have not ended."""
    return run_jobs(baseline).exclude(state__in=FINISHED).count()


def run_jobs(baseline: Baseline):
    """Return the jobs enqueued since the run began, but for those of the shop's schedules."""
    return Job.objects.filter(enqueued_at__gte=baseline.at, schedule="")


def gather(
    baseline: Baseline, ledger: Path, *, accepted: Sequence[int], refused: Sequence[str]
) -> Evidence:
    """Read everything that happened since `baseline`."""
    deliveries = list(read_ledger(ledger))
    jobs = [JobFact(*row) for row in job_rows(baseline)]
    return Evidence(
        accepted=frozenset(accepted),
        refused=tuple(refused),
        orders=frozenset(
            Order.objects.filter(pk__gt=baseline.order_id).values_list("pk", flat=True)
        ),
        effects={
            "stock": effect_rows(StockMovement, baseline),
            "charge record": effect_rows(Charge, baseline),
            "charge": Counter(
                int(d.reference) for d in deliveries if d.kind == "charge" and d.worked
            ),
            "mail": Counter(int(d.reference) for d in deliveries if d.kind == "mail" and d.worked),
        },
        repeated=Counter(d.kind for d in deliveries if not d.worked),
        jobs=jobs,
        attempts=attempt_facts(baseline, {job.id for job in jobs}),
    )


def deaths(baseline: Baseline) -> int:
    """Return how many workers of the run died; those that lost their supervisor only stopped."""
    dead = Worker.objects.filter(kind="worker", dead=True, started_at__gte=baseline.at)
    return dead.exclude(dead_reason="stopped").count()


def effect_rows(model, baseline: Baseline) -> Counter[int]:
    """Return how many rows of `model` each order of the run has."""
    rows = model.objects.filter(order_id__gt=baseline.order_id)
    return Counter(rows.values_list("order_id", flat=True))


def job_rows(baseline: Baseline):
    """Return id, task, state and error of the run's jobs."""
    return run_jobs(baseline).values_list("id", "task", "state", "error_class")


def attempt_facts(baseline: Baseline, job_ids: set[UUID]) -> list[AttemptFact]:
    """Return the attempts of these jobs of the run."""
    pids = dict(Worker.objects.values_list("pk", "pid"))
    rows = Attempt.objects.filter(finished_at__gte=baseline.at).values_list(
        "job_id", "number", "outcome", "started_at", "finished_at", "worker"
    )
    return [
        AttemptFact(*facts, pid=pids.get(worker))
        for *facts, worker in rows.iterator()
        if facts[0] in job_ids
    ]
