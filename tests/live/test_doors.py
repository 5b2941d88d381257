"""Who is let in over the WebSocket, and who has to leave within the time that is stated."""

from collections.abc import Callable

import pytest
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session

from jobqueue.live import protocol
from tests.live.conftest import Person

RECHECK_SECONDS = 2.0


@pytest.fixture(autouse=True)
def _often(settings: object) -> None:
    settings.JOBQUEUE = {"LIVE": {"RECHECK_SECONDS": RECHECK_SECONDS, "MAX_PER_USER": 2}}  # type: ignore[attr-defined]


REFUSED: list[dict[str, str | None]] = [
    {"cookie": None},
    {"cookie": "sessionid=0123456789abcdefghijklmnopqrstuv"},
    {"cookie": "sessionid=" + "x" * 5_000},
    {"origin": None},
    {"origin": "null"},
    {"origin": "http://evil.example"},
    {"origin": "https://testserver"},
    {"origin": "http://testserver:8000"},
    {"origin": "http://testserver.evil.example"},
    {"origin": "http://testserver@evil.example"},
    {"host": "evil.example", "origin": "http://evil.example"},
    {"host": "testserver, evil.example"},
    {"host": None},
]


def test_who_is_nobody_or_comes_from_elsewhere_is_refused_before_it_is_accepted(
    watcher: Person,
) -> None:
    assert [headers for headers in REFUSED if watcher.socket(**headers).connect()] == []
    assert watcher.socket().connect()


def test_trusted_origins_are_let_in(watcher: Person, settings: object) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.example.com"]  # type: ignore[attr-defined]
    assert watcher.socket(origin="https://jobs.example.com").connect()
    assert not watcher.socket(origin="http://jobs.example.com").connect()


def test_who_is_not_active_staff_is_refused(make_person: Callable[..., Person]) -> None:
    for fields in ({"is_staff": False}, {"is_active": False}):
        person = make_person(f"without {fields}", "view_job")
        person.user.__class__.objects.filter(pk=person.user.pk).update(**fields)
        assert not person.socket().connect()


def test_a_logout_closes_the_session_at_once_and_no_other(
    watcher: Person, settings: object
) -> None:
    settings.JOBQUEUE = {"LIVE": {"RECHECK_SECONDS": 60}}  # type: ignore[attr-defined]
    socket = watcher.enter()
    other = Person(socket._loop, watcher.user, [])
    left = other.enter()
    watcher.browser.logout()
    assert socket.close_code() == protocol.Close.LOGGED_OUT
    left.send({"type": "ping"})
    assert left.next()["type"] == "pong"
    left.leave()


def logged_out_elsewhere(person: Person) -> None:
    Session.objects.filter(pk=person.browser.cookies["sessionid"].value).delete()


def deactivated(person: Person) -> None:
    person.user.is_active = False
    person.user.save()


def new_password(person: Person) -> None:
    person.user.set_password("another one")
    person.user.save()


def demoted(person: Person) -> None:
    person.user.is_staff = False
    person.user.save()


def deleted(person: Person) -> None:
    person.user.delete()


def test_who_may_no_longer_be_there_is_closed_at_the_next_look(
    make_person: Callable[..., Person],
) -> None:
    expected = {
        logged_out_elsewhere: protocol.Close.LOGGED_OUT,
        deactivated: protocol.Close.LOGGED_OUT,
        new_password: protocol.Close.LOGGED_OUT,
        deleted: protocol.Close.LOGGED_OUT,
        demoted: protocol.Close.FORBIDDEN,
    }
    people = {happens: make_person(happens.__name__, "view_job") for happens in expected}
    sockets = {happens: person.enter() for happens, person in people.items()}
    for happens, person in people.items():
        happens(person)
    assert {h: socket.close_code() for h, socket in sockets.items()} == expected


def test_a_permission_that_is_taken_away_ends_what_it_allowed(watcher: Person) -> None:
    socket = watcher.enter()
    socket.subscribe("s", "stats")
    socket.subscribe("j", "jobs")
    socket.event("s")
    watcher.user.user_permissions.clear()
    assert socket.until("hello")["permissions"] == []
    error = socket.until("error", "s")["problem"]
    assert (error["code"], error["permission"]) == ("permission-denied", "jobqueue.view_job")
    assert socket.until("resync", "j")["reason"] == protocol.Resync.PERMISSIONS


def test_who_may_no_longer_see_payloads_learns_nothing_more_from_a_filter(
    make_person: Callable[..., Person],
) -> None:
    auditor = make_person("auditor", "view_job", "view_job_payload")
    socket = auditor.enter()
    socket.subscribe("j", "jobs", filter="args.user_id:42", size=10)
    assert socket.event("j") == []
    auditor.user.user_permissions.remove(
        *auditor.user.user_permissions.filter(codename="view_job_payload")
    )
    error = socket.until("error", "j")["problem"]
    assert (error["code"], error["permission"]) == (
        "permission-denied",
        "jobqueue.view_job_payload",
    )


def test_a_user_has_so_many_connections(watcher: Person) -> None:
    watcher.enter()
    watcher.enter()
    third = watcher.socket()
    assert third.connect()
    assert third.close_code() == protocol.Close.TOO_MANY


def test_looking_at_a_session_writes_nothing(watcher: Person, settings: object) -> None:
    """With a new SECRET_KEY and the old one as a fallback, Django would give it another key."""
    old = django_settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "a new one", [old]  # type: ignore[attr-defined]
    before = list(Session.objects.values_list())
    watcher.enter()
    assert list(Session.objects.values_list()) == before
