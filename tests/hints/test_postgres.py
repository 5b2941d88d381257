"""Hints as notifications: after the commit only, heard by all, over a session that comes back."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from jobqueue import hints
from jobqueue.events import Event
from jobqueue.hints.sender import MAX_QUEUES
from project.servers import PgBouncer, PostgresServer
from tests.hints.conftest import Listen, Use
from tests.hints.ears import until, until_heard
from tests.settings import database

pytestmark = [
    pytest.mark.postgres_only("only PostgreSQL has notifications"),
    pytest.mark.django_db(transaction=True),
]

LONG = "q" * 120
WIDE = "ü" * 128


@pytest.fixture(autouse=True)
def notifications(no_loss: None, use: Use) -> None:
    use(hints="postgres")


@pytest.mark.parametrize("queue", ["default", "with 'quotes'", LONG, WIDE])
def test_a_hint_is_heard_whatever_the_queue_is_called(listen: Listen, queue: str) -> None:
    ear = listen("default", "with 'quotes'", LONG, WIDE)
    hints.send("default", [queue])
    ear.wait_for(queue)
    assert hints.lost("default") == 0


def test_a_hint_is_heard_only_by_those_who_watch_the_queue(listen: Listen) -> None:
    default, mail = listen("default"), listen("mail")
    hints.send("default", ["mail"])
    mail.wait_for("mail")
    hints.send("default", ["default"])
    default.wait_for("default")
    assert mail.heard == []


def test_a_worker_of_all_queues_hears_of_a_queue_it_has_never_seen(listen: Listen) -> None:
    ear = listen()
    hints.send("default", ["never seen"])
    ear.wait_for("never seen")


def test_nothing_is_sent_from_inside_a_transaction(listen: Listen) -> None:
    ear = listen("default", "mail")
    with transaction.atomic():
        hints.send("default", ["default"])
    hints.send("default", ["mail"])
    ear.wait_for("mail")
    assert ear.heard == []
    assert hints.lost("default") == 0


def test_nothing_is_sent_from_a_transaction_managed_by_hand(listen: Listen) -> None:
    ear = listen("default", "mail")
    connection.set_autocommit(False)
    try:
        hints.send("default", ["default"])
    finally:
        connection.rollback()
        connection.set_autocommit(True)
    hints.send("default", ["mail"])
    ear.wait_for("mail")
    assert ear.heard == []


def test_a_busy_worker_drops_what_idle_ones_hear_too(listen: Listen) -> None:
    busy, idle = listen("default", "mail", wants=False), listen("default")
    hints.send("default", ["default"])
    idle.wait_for("default")
    busy.listener.want(True)
    until_heard(busy, "mail")
    assert busy.heard == []


def test_the_queues_of_a_listener_can_change(listen: Listen) -> None:
    ear = listen()
    ear.listener.watch(["mail"])
    until_heard(ear, "mail")


def test_hints_of_one_call_are_bounded() -> None:
    counting = Counting()
    with connection.execute_wrapper(counting):
        hints.send("default", [f"queue {n}" for n in range(10 * MAX_QUEUES)])
    assert counting.statements == MAX_QUEUES


def test_hints_are_heard_again_after_the_session_was_ended(
    listen: Listen, events: list[Event]
) -> None:
    ear = listen("default")
    end_other_sessions()
    until(lambda: "hints.listening_failed" in [e.name for e in events])
    until_heard(ear, "default")
    both = ["hints.listening_failed", "hints.listening_recovered"]
    until(lambda: [e.name for e in events] == both)


def test_a_failed_notification_is_counted_and_not_raised(events: list[Event]) -> None:
    with connection.execute_wrapper(refuse):
        hints.send("default", ["default"])
    assert hints.lost("default") == 1
    assert [e.name for e in events if e.level >= logging.WARNING] == ["hints.sending_failed"]


def test_a_listener_behind_a_pooler_says_once_that_it_hears_nothing(
    pgbouncer: PgBouncer, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    pooled = database(pgbouncer.url_of(connection.settings_dict["NAME"]))
    for key in ("HOST", "PORT"):
        monkeypatch.setitem(connection.settings_dict, key, pooled[key])
    listener = hints.listen("default", ["default"], lambda queue: None)
    listener.start()
    until(lambda: [e.name for e in events] == ["hints.pooled"])
    listener.stop()
    assert not listener.is_listening


def test_hints_are_heard_again_after_a_restart_of_the_server(
    disposable_postgres: PostgresServer, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = database(disposable_postgres.url)
    for key in ("HOST", "PORT", "NAME", "USER", "PASSWORD"):
        monkeypatch.setitem(connection.settings_dict, key, mine[key])
    connection.close()
    try:
        ear = listen("default")
        for how in ("fast", "immediate"):
            disposable_postgres.restart(how)
        connection.close()
        until_heard(ear, "default")
    finally:
        connection.close()
        ear.listener.stop()


class Counting:
    statements = 0

    def __call__(self, execute: Callable[..., Any], *args: Any) -> Any:
        self.statements += 1
        return execute(*args)


def refuse(execute: Callable[..., Any], *args: Any) -> Any:
    raise connection.Database.OperationalError("too many notifications in the NOTIFY queue")


def end_other_sessions() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND query LIKE '%LISTEN%'"
        )
