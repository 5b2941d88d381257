"""Which way hints go, and what happens where the options name a way that cannot be gone."""

import logging
import sys
from typing import Any

import pytest

from jobqueue import hints
from jobqueue.events import Event
from jobqueue.exceptions import InvalidOptions
from tests.hints.conftest import Use

URL = "redis://:secret@127.0.0.1:1/0"

on_sqlite = pytest.mark.sqlite_only("what a database without notifications allows")
on_postgres = pytest.mark.postgres_only("what a database with notifications allows")


@pytest.fixture
def no_redis_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)


def test_auto_is_redis_where_there_is_a_url(use: Use) -> None:
    use(hints="auto", redis_url=URL)
    assert hints.kind("default") == "redis"


@on_postgres
def test_auto_is_notifications_without_redis(use: Use) -> None:
    use(hints="auto")
    assert hints.kind("default") == "postgres"


@on_sqlite
def test_auto_is_none_without_redis_on_sqlite(use: Use) -> None:
    use(hints="auto")
    assert hints.kind("default") == "none"


@pytest.mark.usefixtures("no_redis_package")
def test_auto_does_without_redis_where_the_package_is_missing(use: Use) -> None:
    use(hints="auto", redis_url=URL)
    assert hints.kind("default") in ("postgres", "none")


@pytest.mark.usefixtures("no_redis_package")
def test_redis_without_its_package_says_what_to_install(use: Use) -> None:
    use(hints="redis", redis_url=URL)
    with pytest.raises(InvalidOptions, match=r"django-jobqueue\[redis\]"):
        hints.listen("default", ["default"], lambda queue: None)


def test_redis_without_a_url_says_so(use: Use) -> None:
    use(hints="redis")
    with pytest.raises(InvalidOptions, match="REDIS_URL"):
        hints.kind("default")


@on_sqlite
def test_notifications_need_postgresql(use: Use) -> None:
    use(hints="postgres")
    with pytest.raises(InvalidOptions, match="not PostgreSQL"):
        hints.kind("default")


def test_none_hears_nothing_and_loses_nothing(use: Use) -> None:
    use(hints="none")
    listener = hints.listen("default", ["default"], lambda queue: None)
    listener.start()
    listener.want(True)
    hints.send("default", ["default"])
    listener.pass_on(["default"])
    listener.stop()
    assert (listener.kind, listener.is_listening, hints.lost("default")) == ("none", False, 0)


@pytest.mark.parametrize("url", [None, "redis://:pa/ss#word@127.0.0.1:1/0", "http://127.0.0.1"])
def test_enqueueing_never_fails_for_wrong_options(
    use: Use, url: Any, events: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    use(hints="redis", redis_url=url)
    for _ in range(3):
        hints.send("default", ["default"])
    assert hints.lost("default") == 3
    assert [e.name for e in events if e.level >= logging.WARNING] == ["hints.sending_failed"]
    assert "REDIS_URL" in caplog.text
    assert "pa/ss" not in caplog.text
    assert "ss#word" not in caplog.text


def test_an_unreadable_url_is_not_repeated_in_the_error(use: Use) -> None:
    use(hints="redis", redis_url="redis://:pa/ss@127.0.0.1:1/0")
    with pytest.raises(InvalidOptions) as caught:
        hints.listen("default", ["default"], lambda queue: None)
    assert "pa" not in str(caught.value).replace("password", "")
    assert caught.value.__suppress_context__
