"""Limits as operators see and change them: who, why, until somebody resets it."""

import pytest

from jobqueue import control, hints
from jobqueue.engine import limit_rows
from jobqueue.engine.limits import Wish, sweep_limits, take
from jobqueue.exceptions import InvalidArgument
from jobqueue.models import Action, Limit, Queue
from jobqueue.storage.records import CodedLimit
from tests.storage.making import QUEUE, TASK, insert, register, states

KEY = "customer:42"


@pytest.fixture
def coded(storage):
    """The code says: two of each customer."""
    limit = CodedLimit(key="customer", running=2, rate=None, per=None, source="app.tasks.sync")
    storage.seed_limits([limit], ["default"])
    return limit


def numbers(key="customer"):
    (found,) = [limit for limit in control.limits() if limit.key == key]
    return found.running, found.rate, found.per


def start(storage, worker):
    taken = take(storage, Wish(worker, [QUEUE], [TASK]), 10, 10)
    return [claim.id for claim in (*taken.limited, *taken.claims)]


def test_raised_and_lowered_numbers_act_on_jobs_that_wait(storage, actor, coded):
    worker, ids = register(storage), sorted(insert(storage, 6, limit_key=KEY))
    assert len(start(storage, worker)) == 2
    assert str(control.set_limit("customer", actor, running=3, reason="quiet hour")) == "1 set"
    sweep_limits(storage, [QUEUE])
    assert len(start(storage, worker)) == 1
    control.set_limit("customer", actor, running=1)
    sweep_limits(storage, [QUEUE])
    assert start(storage, worker) == []
    control.lift_limit("customer", actor)
    sweep_limits(storage, [QUEUE])
    assert len(start(storage, worker)) == 3
    assert set(states(*ids)) == {"running"}


def test_the_limit_says_who_set_it_and_what_the_code_says(storage, actor, coded):
    control.set_limit("customer", actor, running=1, rate=5, per=60, reason="their API is slow")
    (found,) = control.limits()
    assert (found.running, found.rate, found.per) == (1, 5, 60.0)
    assert (found.set_by, found.reason, found.code) == ("kim", "their API is slow", (2, None, None))
    assert found.set_at is not None
    storage.seed_limits([coded], ["default"])
    assert numbers() == (1, 5, 60.0)
    assert str(control.reset_limit("customer", actor)) == "1 reset"
    assert numbers() == (2, None, None)
    verbs = Action.objects.order_by("id").values_list("verb", "target", "actor")
    assert list(verbs) == [("set_limit", "customer", "kim"), ("reset_limit", "customer", "kim")]


def test_one_key_can_have_numbers_of_its_own_until_they_are_reset(storage, actor, coded):
    control.set_limit(KEY, actor, running=0)
    assert storage.read_rooms([KEY])[KEY].places == 0
    assert storage.read_rooms(["customer:7"])["customer:7"].places == 2
    control.reset_limit(KEY, actor)
    assert storage.read_rooms([KEY])[KEY].places == 2
    assert not Limit.objects.filter(key=KEY).exists()


def test_a_queue_is_limited_from_the_next_claim_on_and_hinted_at(storage, actor, monkeypatch):
    seen = []
    monkeypatch.setattr(hints, "send", lambda alias, queues, *rest: seen.append(set(queues)))
    worker = register(storage)
    insert(storage, 3)
    control.set_limit("queue:default", actor, running=1)
    assert storage.claim_many(worker, [QUEUE], [TASK], 10) == []
    assert len(start(storage, worker)) == 1
    control.reset_limit("queue:default", actor)
    assert not Queue.objects.get().limited
    assert len(storage.claim_many(worker, [QUEUE], [TASK], 10)) == 2
    assert seen == [{"default"}, {"default"}]


def test_counts_are_those_of_the_name_of_one_key_and_of_a_queue(storage, actor, coded):
    worker = register(storage)
    insert(storage, 3, limit_key=KEY)
    insert(storage, 1, limit_key="customer:7")
    start(storage, worker)
    insert(storage, task="app.gone", limit_key=KEY)
    storage.park_unknown([TASK], 10)  # blocked for another reason
    control.set_limit(KEY, actor, running=1)
    control.set_limit("queue:default", actor, running=9)
    counts = {one.key: (one.running_now, one.blocked_now) for one in control.limits()}
    assert counts == {"customer": (3, 1), KEY: (2, 1), "queue:default": (3, 0)}
    for key, expected in counts.items():
        (found,) = control.limits(keys=[key])
        assert (found.key, (found.running_now, found.blocked_now)) == (key, expected)
    assert [one.key for one in control.limits(keys=[KEY, "gone"])] == [KEY]


def test_to_ask_for_one_limit_counts_the_jobs_of_no_other(storage, coded, monkeypatch):
    other = CodedLimit(key="cust", running=2, rate=None, per=None, source="app.tasks.other")
    storage.seed_limits([other], ["default"])
    insert(storage, 2, limit_key=KEY)
    start(storage, register(storage))
    counted = []
    real = limit_rows._grouped
    monkeypatch.setattr(
        limit_rows, "_grouped", lambda *given: counted.append(real(*given)) or counted[-1]
    )
    control.limits(keys=["cust"])
    assert not any(counted)
    control.limits()
    assert any(counted)


def test_doing_it_twice_changes_nothing_the_second_time(actor, coded):
    for change in (
        lambda: control.set_limit("customer", actor, running=1),
        lambda: control.lift_limit("customer", actor),
        lambda: control.reset_limit("customer", actor),
    ):
        assert change().changed == 1
        assert change().counts == {"skipped: nothing to change": 1}
    assert Action.objects.count() == 3


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("customer", {}, "Give running"),
        ("customer", {"running": -1}, "0 to 1,000,000"),
        ("customer", {"rate": 5}, "belong together"),
        ("customer", {"rate": 5, "per": 0.01}, "0.1 to"),
        ("custmer:42", {"running": 1}, "There is no limit 'custmer'.*customer"),
        ("", {"running": 1}, "key of a limit"),
        ("queue", {"running": 1}, "key of a limit"),
        ("x" * 256, {"running": 1}, "key of a limit"),
        ("a\x00b", {"running": 1}, "key of a limit"),
        ("queue:", {"running": 1}, "1 to 128 characters"),
    ],
    ids=str,
)
def test_what_means_nothing_is_refused_and_changes_nothing(actor, coded, key, given, says):
    with pytest.raises(InvalidArgument, match=says):
        control.set_limit(key, actor, **given)
    assert numbers() == (2, None, None)
    assert Limit.objects.count() == 1
