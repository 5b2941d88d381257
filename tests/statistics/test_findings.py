"""What is wrong now: each finding is there when it should be, and not a moment before."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command, load_command_class
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from jobqueue import control, hints
from jobqueue.admin.overview import COMMAND
from jobqueue.engine import database_rules, job_rules
from jobqueue.engine.counts import Count
from jobqueue.engine.findings import RULES, findings
from jobqueue.engine.health import Crew, DeadlyError, Drift, FailedBulk, TaskFailures
from jobqueue.engine.rollups import catch_up, lateness
from jobqueue.engine.status import DeadWorker, QueueStatus, Status
from jobqueue.ids import new_identity
from jobqueue.models import BulkOperation, ErrorGroup, Job, Queue, Rolling, Worker
from jobqueue.states import State
from jobqueue.storage import Storage
from jobqueue.storage.health import HorizonHolder, IdleSlot, OpenTransaction, TableState
from tests.statistics.making import attempt, failure, record
from tests.storage.making import buried, claimed, insert, register, run_sql


@pytest.fixture
def calm(storage: Storage) -> Status:
    """A system in which nothing is wrong."""
    register(storage)
    current = look()
    assert findings(current) == []
    return current


def look() -> Status:
    """Return the status, but for the rows that earlier tests have deleted."""
    return with_health(control.status(), table=None)


def codes(current: Status) -> list[str]:
    return [finding.code for finding in findings(current)]


def with_health(current: Status, **changes: Any) -> Status:
    return replace(current, health=replace(current.health, **changes))


def ready(name: str = "mail", **changes: Any) -> QueueStatus:
    return QueueStatus(name, **{"ready": Count(3), "oldest_ready_seconds": 45.0, **changes})


def holder(**changes: Any) -> HorizonHolder:
    return HorizonHolder("session", 17, "report", "active", 90.0, 5)._replace(**changes)


OPEN = OpenTransaction(new_identity(), 17, "idle in transaction", 75.0)
DEADLY = DeadlyError("5f" * 16, "smtplib.SMTPException", "app.mail", "mail", 8, 10)
Change = Callable[[Status], Status]
CASES: dict[str, tuple[str, str, Change]] = {
    "due jobs stay": ("unpromoted", "error", lambda s: replace(s, oldest_unpromoted=31.0)),
    "due jobs are promoted in time": ("", "", lambda s: replace(s, oldest_unpromoted=29.0)),
    "jobs of the dead stay": ("unreaped", "error", lambda s: replace(s, oldest_unreaped=31.0)),
    "jobs of the dead are taken back": ("", "", lambda s: replace(s, oldest_unreaped=29.0)),
    "nobody ticks": (
        "schedules_late",
        "error",
        lambda s: replace(s, late_schedules=["nightly"]),
    ),
    "a schedule cannot tick": (
        "schedule_failing",
        "warning",
        lambda s: replace(s, failing_schedules={"nightly": "There is no zone Mars."}),
    ),
    "past the deadline": ("overdue", "error", lambda s: with_health(s, overdue=2)),
    "paused with a backlog": (
        "queue_paused",
        "warning",
        lambda s: replace(s, queues=[ready(paused=True, paused_by="kim")]),
    ),
    "paused and empty": (
        "queue_paused",
        "info",
        lambda s: replace(
            s, queues=[ready(ready=Count(0), oldest_ready_seconds=None, paused=True)]
        ),
    ),
    "nobody takes from the queue": (
        "queue_unserved",
        "warning",
        lambda s: replace(with_health(s, served_queues=["default"]), queues=[ready()]),
    ),
    "nobody took from the queue yet": (
        "",
        "",
        lambda s: replace(
            with_health(s, served_queues=["default"]), queues=[ready(oldest_ready_seconds=5.0)]
        ),
    ),
    "every queue is served": (
        "",
        "",
        lambda s: replace(with_health(s, served_queues=None), queues=[ready()]),
    ),
    "no worker": ("no_worker", "warning", lambda s: with_health(s, served_queues=[], crews=[])),
    "no worker, and jobs wait": (
        "no_worker",
        "error",
        lambda s: replace(with_health(s, served_queues=[], crews=[]), queues=[ready()]),
    ),
    "unknown tasks": (
        "unknown_tasks",
        "warning",
        lambda s: replace(s, unknown_tasks={"app.gone": Count(2)}),
    ),
    "many died": ("dead_letters", "warning", lambda s: with_health(s, new_dead=Count(10))),
    "many died of one error": (
        "dead_letters",
        "warning",
        lambda s: with_health(s, new_dead=Count(10), deadly=DEADLY),
    ),
    "a bulk operation failed": (
        "bulk_failed",
        "warning",
        lambda s: with_health(s, failed_bulk=[FailedBulk(3, "run_now", Count(7), 90.0)]),
    ),
    "a few died": ("", "", lambda s: with_health(s, new_dead=Count(9))),
    "a task fails": (
        "task_failing",
        "warning",
        lambda s: with_health(s, failing=[TaskFailures("app.task", 11, 20)]),
    ),
    "every attempt of a task fails": (
        "task_failing",
        "error",
        lambda s: with_health(s, failing=[TaskFailures("app.task", 20, 20, "night mail")]),
    ),
    "a task fails now and then": (
        "",
        "",
        lambda s: with_health(s, failing=[TaskFailures("app.task", 10, 20)]),
    ),
    "a task failed once": (
        "",
        "",
        lambda s: with_health(s, failing=[TaskFailures("app.task", 1, 1)]),
    ),
    "a long job": (
        "long_transaction",
        "warning",
        lambda s: with_health(s, open_transactions=[OPEN], horizon=holder()),
    ),
    "a long report": ("horizon_held", "warning", lambda s: with_health(s, horizon=holder())),
    "a short report": ("", "", lambda s: with_health(s, horizon=holder(seconds=59.0))),
    "a slow standby": (
        "horizon_held",
        "warning",
        lambda s: with_health(s, horizon=holder(seconds=None, transactions=100_001)),
    ),
    "a standby": ("", "", lambda s: with_health(s, horizon=holder(seconds=None))),
    "dead rows": (
        "dead_rows",
        "warning",
        lambda s: with_health(s, table=TableState(50_000, 100_001, 600.0)),
    ),
    "dead rows beside many live ones": (
        "",
        "",
        lambda s: with_health(s, table=TableState(200_000, 150_000, None)),
    ),
    "a forgotten slot": (
        "idle_slot",
        "warning",
        lambda s: with_health(s, idle_slots=[IdleSlot("old", 2 * 1024**3, "extended")]),
    ),
    "a lost slot": (
        "idle_slot",
        "warning",
        lambda s: with_health(s, idle_slots=[IdleSlot("old", 0, "lost")]),
    ),
    "a slot that pauses": (
        "",
        "",
        lambda s: with_health(s, idle_slots=[IdleSlot("new", 1024, "reserved")]),
    ),
    "a clock is off": (
        "clock_drift",
        "warning",
        lambda s: with_health(s, drifts=[Drift("w1", "here", -3.5)]),
    ),
    "two versions": (
        "version_drift",
        "warning",
        lambda s: with_health(s, crews=[Crew("1", 3, 700.0), Crew("2", 1, 601.0)]),
    ),
    "a deployment": (
        "",
        "",
        lambda s: with_health(s, crews=[Crew("1", 3, 9_000.0), Crew("2", 1, 20.0)]),
    ),
    "hints fail": (
        "hints_failing",
        "warning",
        lambda s: with_health(s, hints_error="TimeoutError: timed out"),
    ),
    "figures are old": ("statistics_late", "info", lambda s: with_health(s, rollups_late=301.0)),
    "figures are of a moment ago": ("", "", lambda s: with_health(s, rollups_late=299.0)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_finding_is_there_when_its_facts_are(calm: Status, case: str) -> None:
    code, severity, change = CASES[case]
    found = findings(change(calm))
    assert [(f.code, f.severity) for f in found] == ([(code, severity)] if code else [])
    for finding in found:
        assert finding.sentence.endswith(".")
        assert finding.way_out
        for command in COMMAND.findall(finding.way_out):
            parsed(command)


def parsed(command: str) -> Any:
    """Return the options of a command, read as from a shell; what cannot be read exits."""
    _manage, name, *rest = shlex.split(command)
    parser = load_command_class("jobqueue", name).create_parser("manage.py", name)
    return parser.parse_args(rest)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"overdue": 1}, "1 running job is past"),
        ({"overdue": 2}, "2 running jobs are past"),
        ({"table": TableState(50_000, 100_001, 60.0)}, "vacuumed 1 min ago"),
    ],
)
def test_one_is_one(calm: Status, changes: dict[str, Any], says: str) -> None:
    (finding,) = findings(with_health(calm, **changes))
    assert says in finding.sentence


def test_every_rule_has_a_case(calm: Status) -> None:
    found = {code for code, _, _ in CASES.values() if code}
    assert len(found) >= len(RULES)
    written = {
        name
        for module in (job_rules, database_rules)
        for name, of in vars(module).items()
        if callable(of) and getattr(of, "__module__", "") == module.__name__ and name[0] != "_"
    }
    assert {rule.__name__ for rule in RULES} == written


def test_the_worst_comes_first(calm: Status) -> None:
    bad = with_health(replace(calm, oldest_unpromoted=60.0), rollups_late=400.0, overdue=1)
    bad = replace(bad, unknown_tasks={"app.gone": Count(1)})
    assert [f.severity for f in findings(bad)] == ["error", "error", "warning", "info"]


def test_it_is_said_since_when(calm: Status) -> None:
    paused_at = calm.as_of - timedelta(minutes=8)
    mail = ready(paused=True, paused_by="kim", paused_at=paused_at)
    (paused,) = findings(replace(calm, queues=[mail]))
    assert paused.sentence.startswith("Queue mail is paused by kim (8 min ago): ")
    mail = ready(paused=True, paused_by="kim", paused_at=calm.as_of - timedelta(seconds=12))
    (paused,) = findings(replace(calm, queues=[mail]))
    assert paused.sentence.startswith("Queue mail is paused by kim (12 s ago): ")
    gone = replace(with_health(calm, served_queues=[], crews=[]), workers=[])
    dead = DeadWorker(new_identity(), "worker", "one", "here", 1, 9_000.0, "test")
    scheduler = replace(dead, kind="scheduler", seconds=1.0)
    (nobody,) = findings(replace(gone, dead_workers=[dead, scheduler]))
    assert nobody.sentence == "No worker is alive: the last one was seen 2 h ago."
    (never,) = findings(replace(gone, dead_workers=[]))
    assert never.sentence == "No worker is alive."


def test_a_pause_comes_behind_what_nobody_decided(calm: Status) -> None:
    paused = replace(calm, queues=[ready(paused=True, paused_by="kim")])
    assert codes(with_health(paused, new_dead=Count(10), hints_error="refused")) == [
        "dead_letters",
        "hints_failing",
        "queue_paused",
    ]


# --- the facts ----------------------------------------


def test_queues_of_live_workers_are_served(storage: Storage) -> None:
    register(storage, queues=("mail", "default"))
    assert control.status().health.served_queues == ["default", "mail"]
    draining = register(storage, queues=())
    assert control.status().health.served_queues is None
    Worker.objects.filter(id=draining).update(draining=True)
    storage.mark_dead(register(storage, queues=("other",)), "test")
    register(storage, kind="scheduler", queues=("more",))
    assert control.status().health.served_queues == ["default", "mail"]


def test_a_queue_without_a_worker_is_named_with_its_jobs(storage: Storage) -> None:
    register(storage, queues=("default",))
    Job.objects.filter(id__in=insert(storage, 2, queue="mail")).update(
        run_at=Now() - timedelta(seconds=60)
    )
    (found,) = findings(look())
    assert (found.code, found.subject, found.count) == ("queue_unserved", "mail", Count(2))
    Queue.objects.create(name="mail", paused=True, paused_by="kim")
    assert codes(look()) == ["queue_paused"]


def test_versions_and_clocks_are_those_of_live_workers(storage: Storage) -> None:
    first = register(storage, version="1")
    register(storage, version="1")
    register(storage, version="2")
    Worker.objects.filter(id=first).update(
        clock_ahead=-7.5, started_at=Now() - timedelta(minutes=20)
    )
    storage.mark_dead(register(storage, version="0"), "test")
    health = control.status().health
    assert [(c.version, c.workers) for c in health.crews] == [("1", 2), ("2", 1)]
    assert health.crews[0].seconds == pytest.approx(1_200, abs=5)
    assert [d.seconds for d in health.drifts] == [-7.5]


def test_what_died_lately_is_counted(storage: Storage) -> None:
    old = buried(storage)
    Job.objects.filter(id=old).update(finished_at=Now() - timedelta(hours=2))
    for _ in range(3):
        buried(storage)
    assert control.status().health.new_dead == Count(3)
    assert control.status().counts["dead"] == Count(4)


def test_the_way_out_of_many_dead_letters_takes_those_of_the_worst_error_over_time(
    storage: Storage,
) -> None:
    alike, others = ([buried(storage) for _ in range(n)] for n in (7, 3))
    Job.objects.filter(id__in=others).update(error_fingerprint="0" * 32)
    Job.objects.filter(id__in=alike).update(error_fingerprint="1" * 32, error_class="app.Gone")
    (found,) = (finding for finding in findings(look()) if finding.code == "dead_letters")
    assert found.sentence.endswith(": 7 of them of app.Gone in app.task.")
    assert found.subject == "1" * 32
    (command,) = COMMAND.findall(found.way_out)
    options = vars(parsed(command))
    assert options["spread"] == 600.0
    call_command("jobs", *shlex.split(command)[2:], verbosity=0)
    assert set(Job.objects.filter(state=State.DEAD).values_list("id", flat=True)) == set(others)
    runs = sorted(Job.objects.filter(id__in=alike).values_list("run_at", flat=True))
    assert runs[-1] - runs[0] > timedelta(minutes=8)


def test_a_bulk_operation_that_failed_is_named_for_a_day(storage: Storage) -> None:
    register(storage)
    operation = control.bulk_start("requeue", control.Actor("kim", "shell"), filter="state:dead")
    rows = BulkOperation.objects.filter(pk=operation.pk)
    ago = Now() - timedelta(minutes=5)
    rows.update(state="failed", total=10, seen=4, left=["1", "2"], stepped_at=ago)
    (found,) = findings(look())
    assert (found.code, found.subject, found.count) == ("bulk_failed", str(operation.pk), Count(8))
    assert found.sentence.endswith("with 8 jobs left: its last step was 5 min ago.")
    assert "and of its jobs' error is gone" in found.way_out, "what let them die may go on"
    rows.update(stepped_at=Now() - timedelta(days=2))
    assert findings(look()) == []
    rows.update(stepped_at=ago)
    call_command("jobs", *shlex.split(COMMAND.findall(found.way_out)[-1])[2:], verbosity=0)
    assert findings(look()) == []


def test_a_task_that_fails_is_named_with_the_queue_of_its_newest_error(storage: Storage) -> None:
    now = datetime.now(UTC)
    for minutes, queue in ((2, "old"), (1, "mail")):
        ended = now - timedelta(minutes=minutes)
        fingerprint = queue.ljust(32, "0")
        bad = {"task": "app.bad", "queue": queue, "error_fingerprint": fingerprint}
        record(*(failure(ended, **bad) for _ in range(10)))
    catch_up(storage)
    assert ErrorGroup.objects.count() == 2
    assert control.status().health.failing == [TaskFailures("app.bad", 20, 20, "mail")]
    (found,) = (finding for finding in findings(look()) if finding.code == "task_failing")
    assert COMMAND.findall(found.way_out) == ["manage.py jobs pause mail"]
    assert found.queue == "mail"


def test_tasks_are_judged_by_their_last_minutes(storage: Storage) -> None:
    now, before = datetime.now(UTC), datetime.now(UTC) - timedelta(minutes=30)
    record(
        *(failure(now, task="app.bad", outcome=o) for o in ("failed", "timed_out", "lost")),
        attempt(now, task="app.bad"),
        attempt(now, task="app.good"),
        failure(before, task="app.better"),
    )
    catch_up(storage)
    assert control.status().health.failing == [TaskFailures("app.bad", 3, 4)]


def test_rollups_are_late_while_attempts_wait_to_be_counted(storage: Storage) -> None:
    now = datetime.now(UTC)
    assert control.status().health.rollups_late == 0.0
    record(attempt(now - timedelta(seconds=400)), attempt(now))
    assert control.status().health.rollups_late == pytest.approx(400, abs=5)
    catch_up(storage)
    assert control.status().health.rollups_late == 0.0


@pytest.mark.parametrize("rolled", [None, timedelta(days=1)], ids=["never", "a day ago"])
def test_a_first_attempt_and_one_after_a_quiet_day_make_no_statistics_late(
    storage: Storage, rolled: timedelta | None
) -> None:
    register(storage)
    Rolling.objects.update(rolled_at=rolled and Now() - rolled)
    record(attempt(datetime.now(UTC)))
    assert "statistics_late" not in codes(look())


def test_the_oldest_uncounted_attempt_is_found_by_its_key(storage: Storage) -> None:
    """Its plan reads one row of however many there are."""
    record(*(attempt() for _ in range(50)))
    with CaptureQueriesContext(connection) as ran:
        lateness("default")
    (asked,) = (query["sql"] for query in ran if "jobqueue_attempt" in query["sql"])
    assert "LIMIT 1" in asked
    with transaction.atomic():
        if connection.vendor == "postgresql":
            # What a planner likes depends on what other tests left; ask what it can do.
            for liking in ("seqscan", "bitmapscan", "sort"):
                run_sql(connection, f"SET LOCAL enable_{liking} = off")
        explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
        plan = str(run_sql(connection, f"{explain} {asked}"))
    assert "jobqueue_attempt_pkey" in plan or "INTEGER PRIMARY KEY (rowid>?)" in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


def test_jobs_past_their_deadline_are_counted_after_all_patience(storage: Storage) -> None:
    held = claimed(storage)
    Job.objects.filter(id=held.id).update(deadline=Now() - timedelta(seconds=30))
    assert control.status().health.overdue == 0
    Job.objects.filter(id=held.id).update(deadline=Now() - timedelta(seconds=40))
    assert control.status().health.overdue == 1
    assert Job.objects.get(id=held.id).state == State.RUNNING


def test_hints_that_cannot_be_sent_are_said_without_secrets(settings: Any) -> None:
    pytest.importorskip("redis")
    assert hints.trouble("default") == ""
    url = "redis://:sesame@127.0.0.1:1/0"
    options = {"HINTS": "redis", "REDIS_URL": url}
    settings.TASKS = {"default": {**settings.TASKS["default"], "OPTIONS": options}}
    error = control.status().health.hints_error
    assert error
    assert "sesame" not in error


def test_the_document_is_plain(storage: Storage) -> None:
    register(storage)
    record(failure(datetime.now(UTC)))
    catch_up(storage)
    document = control.status().as_dict()
    assert document["counts"]["ready"] == {"value": 0, "relation": "eq"}
    failing = {"task": "shop.mail", "failed": 1, "attempts": 1, "queue": ""}
    assert document["health"]["failing"] == [failing]
    assert document["workers"][0]["kind"] == "worker"
