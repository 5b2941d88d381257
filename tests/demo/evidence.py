"""Evidence of a run in which everything went well, for tests to spoil."""

from collections import Counter
from dataclasses import replace
from uuid import UUID

from project.demo.facts import Evidence, JobFact

ORDERS = range(1, 4)
TASKS = ("reserve_stock", "charge_card", "send_receipt")
EFFECTS = ("stock", "charge record", "charge", "mail")


def clean(**changes: object) -> Evidence:
    jobs = [
        JobFact(UUID(int=order * 10 + place), task, "succeeded")
        for order in ORDERS
        for place, task in enumerate(TASKS)
    ]
    evidence = Evidence(
        accepted=frozenset(ORDERS),
        refused=(),
        orders=frozenset(ORDERS),
        effects={effect: Counter(ORDERS) for effect in EFFECTS},
        repeated=Counter(),
        jobs=jobs,
        attempts=(),
    )
    return replace(evidence, **changes)


def with_effect(effect: str, counts: dict[int, int]) -> Evidence:
    effects = {name: Counter(ORDERS) for name in EFFECTS}
    effects[effect].update(counts)
    return clean(effects=effects)
