"""The scheduler: promotes at every turn, sweeps and prunes now and then, and hints at it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from jobqueue import control, hints
from jobqueue.engine import declared
from jobqueue.models import Action, IdempotencyKey, Job, Schedule
from jobqueue.runtime import scheduler as scheduler_module
from jobqueue.runtime.scheduler import PRUNE_SECONDS, SWEEP_SECONDS, SYNC_SECONDS, Scheduler
from jobqueue.storage.records import RequestKey
from tests.engine.bench import Bench, Ran
from tests.engine.test_sweeps import ended
from tests.runtime.clock import Clock
from tests.storage.making import insert


@pytest.fixture
def clock(monkeypatch):
    fake = Clock()
    monkeypatch.setattr(scheduler_module, "time", fake)
    return fake


@pytest.fixture
def hinted(monkeypatch):
    """The queues that were hinted at, as the hints' sender was told."""
    told = []
    monkeypatch.setattr(hints, "send", lambda alias, queues, *rest: told.append(set(queues)))
    return told


@pytest.fixture
def make(bench: Bench, clock):
    made = []

    def make_one(given=None, **options) -> Scheduler:
        environment = bench.environment
        made.append(
            Scheduler("default", given or environment.options, environment.direct, **options)
        )
        return made[-1]

    yield make_one
    for each in made:
        each.reset()


def due_later(bench: Bench, **changes):
    """Make a scheduled job whose time has come."""
    (job,) = insert(bench.storage, 1, run_at=timezone.now() + timedelta(hours=1), **changes)
    Job.objects.filter(pk=job).update(run_at=timezone.now() - timedelta(seconds=1))
    return Ran(job)


def test_due_jobs_are_promoted_at_every_turn_and_hinted_at(bench, make, hinted):
    scheduler = make()
    for _ in range(3):
        job = due_later(bench)
        assert scheduler.run_once() is False
        assert job.state == "ready"
    assert hinted == [{"default"}] * 3


def test_a_turn_that_promoted_nothing_hints_at_nothing(make, hinted):
    scheduler = make()
    scheduler.run_once()
    scheduler.run_once()
    assert hinted == []
    assert scheduler.empty_rounds == 2


def test_work_that_was_found_ends_the_count_of_empty_rounds(bench, make, hinted):
    scheduler = make()
    scheduler.run_once()
    due_later(bench)
    scheduler.run_once()
    assert scheduler.empty_rounds == 0


def test_unknown_tasks_are_swept_now_and_then(bench, make, hinted, clock):
    scheduler = make()
    scheduler.run_once()
    (job,) = insert(bench.storage, task="new.tasks.deployed")
    scheduler.run_once()
    assert Ran(job).state == "ready"
    clock.advance(SWEEP_SECONDS)
    scheduler.run_once()
    assert Ran(job).state == "blocked"


def test_old_jobs_are_pruned_now_and_then(bench, make, hinted, clock):
    scheduler = make()
    ended(bench, "succeeded", 8)
    clock.advance(PRUNE_SECONDS)
    scheduler.run_once()
    assert Job.objects.count() == 0


def test_idempotency_keys_are_pruned_when_their_time_is_over(bench, make, hinted, clock):
    storage = bench.storage
    for key, seconds in (("old", -1.0), ("young", 86_400.0)):
        storage.claim_request(RequestKey("user:1", "jobs", key, ""), seconds)
    scheduler = make()
    clock.advance(PRUNE_SECONDS)
    scheduler.run_once()
    assert IdempotencyKey.objects.get().key == "young"


@pytest.mark.parametrize(("days", "kept"), [(365, ["young"]), (None, ["old", "young"])])
def test_what_operators_did_is_pruned_after_its_retention(
    days, kept, make_bench, make, hinted, clock
):
    bench = make_bench(action_retention=days and days * 86_400.0)
    for name, age in (("old", 366), ("young", 364)):
        at = timezone.now() - timedelta(days=age)
        Action.objects.create(at=at, actor=name, surface="shell", verb="pause", target="mail")
    scheduler = make(bench.environment.options)
    clock.advance(PRUNE_SECONDS)
    scheduler.run_once()
    assert list(Action.objects.order_by("at").values_list("actor", flat=True)) == kept


def test_a_scheduler_that_is_to_stop_does_not_begin_to_prune(bench, make, hinted, clock):
    scheduler = make(should_stop=lambda: True)
    ended(bench, "succeeded", 8)
    clock.advance(PRUNE_SECONDS)
    scheduler.run_once()
    assert Job.objects.count() == 1


def test_without_maintenance_it_only_promotes_and_expires(bench, make, hinted, clock):
    scheduler = make(only_promote=True)
    ended(bench, "succeeded", 8)
    (unknown,) = insert(bench.storage, task="new.tasks.deployed")
    promoted = due_later(bench)
    (expired,) = insert(bench.storage, expires_at=timezone.now() - timedelta(seconds=1))
    clock.advance(PRUNE_SECONDS)
    scheduler.run_once()
    assert promoted.state == "ready"
    assert Ran(expired).state == "cancelled"
    assert Ran(unknown).state == "ready"
    assert Job.objects.count() == 4


def test_a_step_of_a_bulk_operation_is_carried_out_at_a_turn(bench, make, hinted):
    scheduler = make()
    actor = control.Actor("kim", "shell")
    (job,) = insert(bench.storage)
    operation = control.bulk_start("cancel", actor, filter="state:ready")
    comes_back_at_once = scheduler.run_once()
    assert comes_back_at_once is not bench.storage.one_host  # there, others get the write lock
    assert scheduler.empty_rounds == 0
    assert Ran(job).state == "cancelled"
    assert control.bulk_operation(operation.pk).state == "finished"
    assert scheduler.run_once() is False


def test_without_maintenance_bulk_operations_are_left_to_others(bench, make, hinted):
    scheduler = make(only_promote=True)
    insert(bench.storage)
    operation = control.bulk_start("cancel", control.Actor("kim", "shell"), filter="state:ready")
    scheduler.run_once()
    assert control.bulk_operation(operation.pk).seen == 0


def test_two_schedulers_promote_a_job_once(bench, make, hinted):
    one, two = make(), make()
    job = due_later(bench)
    one.run_once()
    two.run_once()
    assert job.state == "ready"
    assert hinted == [{"default"}]


def test_a_lost_connection_is_replaced(bench, make, hinted):
    scheduler = make()
    scheduler.run_once()
    scheduler.reset()
    job = due_later(bench)
    scheduler.run_once()
    assert job.state == "ready"


# --- schedules ----------------------------------------


HOURLY = {"task": "tests.app.tasks.record", "every": 3_600}


@pytest.fixture
def declare(settings, monkeypatch):
    """Declares schedules in the settings."""
    monkeypatch.setattr(declared, "_declared", {})

    def declare_in_settings(**schedules):
        settings.TASKS = {
            "default": {**settings.TASKS["default"], "OPTIONS": {"SCHEDULES": schedules}}
        }

    return declare_in_settings


def missed_a_tick() -> None:
    Schedule.objects.update(last_tick=timezone.now() - timedelta(minutes=61), look_at=None)


def test_declared_schedules_get_their_rows_at_the_first_turn_and_tick_at_any(
    make, declare, hinted, clock
):
    declare(ping=HOURLY)
    scheduler = make()
    scheduler.run_once()
    assert Schedule.objects.get().name == "ping"
    missed_a_tick()
    scheduler.run_once()
    assert Job.objects.get().schedule == "ping"
    assert {"default"} in hinted


def test_what_another_version_declares_is_compared_now_and_then(make, declare, hinted, clock):
    declare(ping=HOURLY)
    scheduler = make()
    scheduler.run_once()
    declare(ping={**HOURLY, "every": 7})
    scheduler.run_once()
    assert Schedule.objects.get().every_seconds == 3_600
    clock.advance(SYNC_SECONDS * 1.3)
    scheduler.run_once()
    assert Schedule.objects.get().every_seconds == 7


def test_without_maintenance_nothing_ticks(make, declare, hinted, clock):
    declare(ping=HOURLY)
    make().run_once()
    missed_a_tick()
    make(only_promote=True).run_once()
    assert Job.objects.count() == 0
