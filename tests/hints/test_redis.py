"""Hints over Redis: one wakes one worker, none hold anything, nothing grows."""

from collections.abc import Iterator

import pytest
from django.db import connections
from redis import Redis

from jobqueue import hints
from jobqueue.hints.redis_streams import MAX_HINTS, key_of
from tests.hints.conftest import Listen, Use
from tests.hints.ears import until

LONG = "q" * 120
WIDE = "ü" * 128


@pytest.fixture(autouse=True)
def redis(no_loss: None, use: Use, redis_url: str) -> Iterator[Redis]:
    use(hints="redis", redis_url=redis_url)
    with Redis.from_url(redis_url) as client:
        client.flushall()
        yield client


@pytest.mark.parametrize("queue", ["default", "with space:and {braces}", LONG, WIDE])
def test_a_hint_is_heard_whatever_the_queue_is_called(listen: Listen, queue: str) -> None:
    ear = listen("default", "with space:and {braces}", LONG, WIDE)
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


def test_one_hint_wakes_one_worker(listen: Listen) -> None:
    ears = [listen("default") for _ in range(4)]
    for count in range(1, 11):
        hints.send("default", ["default"])
        until(lambda: sum(len(ear.heard) for ear in ears) >= count)  # noqa: B023 - awaited here
    assert sum(len(ear.heard) for ear in ears) == 10


def test_hints_of_a_burst_are_one_look(listen: Listen) -> None:
    ear = listen("default", wants=False)
    for _ in range(50):
        hints.send("default", ["default", "default"])
    ear.listener.want(True)
    ear.wait_for("default")
    hints.send("default", ["default"])
    ear.wait_for("default")
    assert ear.heard == []


def test_a_worker_without_free_slots_leaves_hints_to_others(listen: Listen) -> None:
    busy, idle = listen("default", wants=False), listen("default")
    hints.send("default", ["default"])
    idle.wait_for("default")
    assert busy.heard == []


def test_a_hint_waits_until_somebody_has_free_slots(listen: Listen) -> None:
    busy = listen("default", wants=False)
    hints.send("default", ["default"])
    busy.listener.want(True)
    busy.wait_for("default")


def test_a_hint_read_by_a_worker_that_just_became_busy_is_passed_on(
    listen: Listen, redis: Redis
) -> None:
    busy = listen("default")
    until(lambda: blocked_clients(redis) == 1)  # it waits for a hint that it will not want
    busy.listener.want(False)
    hints.send("default", ["default"])
    idle = listen("default")
    idle.wait_for("default")
    assert busy.heard == []


def test_a_hint_can_be_passed_on(listen: Listen) -> None:
    first, second = listen("default"), listen("default", wants=False)
    hints.send("default", ["default"])
    first.wait_for("default")
    first.listener.want(False)
    first.listener.pass_on(["default"])
    second.listener.want(True)
    second.wait_for("default")
    assert first.heard == []


def test_the_queues_of_a_listener_can_change(listen: Listen) -> None:
    ear = listen()
    ear.listener.watch(["mail"])
    hints.send("default", ["mail"])
    ear.wait_for("mail")
    ear.listener.watch(["mail", "new"])
    hints.send("default", ["new"])
    ear.wait_for("new")


def test_a_hint_sent_before_anybody_listened_is_heard(listen: Listen) -> None:
    hints.send("default", ["default"])
    listen("default").wait_for("default")


def test_a_stopped_listener_reads_nothing_more(listen: Listen) -> None:
    first = listen("default")
    first.listener.stop()
    hints.send("default", ["default"])
    listen("default").wait_for("default")
    assert first.heard == []
    assert not first.listener.is_listening


def test_redis_holds_only_capped_expiring_streams(listen: Listen, redis: Redis) -> None:
    ears = [listen("default", "mail") for _ in range(3)]
    for ear in ears:
        ear.listener.stop()
    for _ in range(5 * MAX_HINTS):
        hints.send("default", ["default", LONG])
    keys = redis.keys("*")
    assert len(keys) == 3
    for key in keys:
        assert redis.type(key) == b"stream"
        assert 0 < redis.ttl(key) <= 3_600
        assert redis.xlen(key) <= 3 * MAX_HINTS  # trimmed by whole blocks of a hundred


def test_dead_workers_leave_no_consumers_and_no_pending_hints(listen: Listen, redis: Redis) -> None:
    for _ in range(3):
        ear = listen("default")
        hints.send("default", ["default"])
        ear.wait_for("default")
        ear.listener.stop()
    (key,) = redis.keys("*")
    (group,) = redis.xinfo_groups(key)
    assert (group["consumers"], group["pending"]) == (1, 0)


def test_a_hint_names_a_queue_and_nothing_else(redis: Redis) -> None:
    hints.send("default", [LONG])
    (key,) = redis.keys("*")
    assert len(key) < 128
    ((_, fields),) = redis.xrange(key)
    assert fields == {b"h": b""}


def test_two_projects_on_one_redis_do_not_meet(
    listen: Listen, redis: Redis, use: Use, redis_url: str
) -> None:
    other = connections["other"].settings_dict["NAME"]
    assert other != connections["default"].settings_dict["NAME"]
    ear = listen("default")
    use(hints="redis", redis_url=redis_url, database="other")
    hints.send("default", ["default"])
    use(hints="redis", redis_url=redis_url)
    hints.send("default", ["default"])
    ear.wait_for("default")
    assert len(redis.keys("*")) == 2
    assert ear.heard == []


def test_keys_of_a_project_share_a_cluster_slot() -> None:
    assert key_of("abc", "one").startswith("jobqueue:{abc}:")


def blocked_clients(redis: Redis) -> int:
    info: dict[str, int] = redis.info("clients")
    return info["blocked_clients"]
