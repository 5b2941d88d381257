"""Plans, policies and what is due: arithmetic of times, without a database."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.declarations import declaration, parse_schedules
from jobqueue.exceptions import InvalidSchedule
from jobqueue.plan import LATEST, MAX_COUNTED, Due, Plan, Policy, due, preview

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
MINUTELY = Plan(cron="* * * * *")
HOURLY = Plan(cron="0 * * * *")


def later(**units: float) -> datetime:
    return NOON + timedelta(**units)


def first(plan: Plan, count: int, after: datetime = NOON) -> list[datetime]:
    return list(islice(plan.ticks(after), count))


# --- intervals and times ----------------------------------------


def test_an_interval_is_counted_from_1970_or_from_its_start():
    quarters = [later(minutes=15), later(minutes=30)]
    assert first(Plan(every_seconds=900), 2, later(minutes=7)) == quarters
    offset = Plan(every_seconds=900, start_at=later(minutes=-8))
    assert first(offset, 2) == [later(minutes=7), later(minutes=22)]


def test_the_start_and_the_end_may_be_ticks():
    plan = Plan(every_seconds=60, start_at=NOON, end_at=later(minutes=2))
    assert first(plan, 9, later(days=-9)) == [NOON, later(minutes=1), later(minutes=2)]
    assert plan.before(later(days=9)) == later(minutes=2)
    assert plan.before(later(seconds=-1)) is None


def test_a_time_ticks_once():
    plan = Plan(at=NOON)
    assert first(plan, 9, later(days=-9)) == [NOON]
    assert plan.after(NOON) is None
    assert plan.before(later(seconds=-1)) is None
    assert plan.before(later(days=9)) == NOON


@given(
    every=st.integers(1, 10**8),
    start=st.one_of(st.none(), st.integers(0, 10**10)),
    at=st.integers(0, 2 * 10**10),
)
def test_an_interval_ticks_before_and_after_any_instant(every, start, at):
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    anchor = None if start is None else epoch + timedelta(seconds=start)
    plan = Plan(every_seconds=every, start_at=anchor)
    instant = epoch + timedelta(seconds=at)
    following, last = plan.after(instant), plan.before(instant)
    assert following is not None
    assert following > instant
    if last is None:
        assert following == anchor
    else:
        assert last <= instant
        assert following - last == timedelta(seconds=every)


@pytest.mark.parametrize("plan", [HOURLY, Plan(every_seconds=60), Plan(at=LATEST)])
def test_the_end_of_time_is_reached_without_an_error(plan):
    assert plan.after(LATEST) is None
    assert plan.before(datetime.max.replace(tzinfo=UTC)) is not None
    assert plan.after(datetime.min.replace(tzinfo=UTC)) is not None


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(cron="0 6 * * *"), "At 06:00 every day"),
        (Plan(every_seconds=1), "Every second"),
        (Plan(every_seconds=5_400), "Every 90 minutes"),
        (Plan(every_seconds=86_400), "Every day"),
        (Plan(at=NOON, time_zone="Asia/Kathmandu"), "Once, at 2027-03-01 17:45:00"),
    ],
)
def test_words_say_when(plan, words):
    assert plan.words() == words


def test_the_fingerprint_tells_plans_apart_and_only_plans():
    plans = [
        HOURLY,
        MINUTELY,
        Plan(cron="0 * * * *", time_zone="Europe/Paris"),
        Plan(cron="0 * * * *", start_at=NOON),
        Plan(cron="0 * * * *", end_at=NOON),
        Plan(every_seconds=60),
        Plan(at=NOON),
    ]
    prints = [plan.fingerprint(enabled) for plan in plans for enabled in (True, False)]
    assert len(set(prints)) == len(prints)
    paris = NOON.astimezone(tz=datetime.fromisoformat("2027-03-01T13:00+01:00").tzinfo)
    assert Plan(at=paris).fingerprint(True) == Plan(at=NOON).fingerprint(True)


# --- what is due ----------------------------------------


@pytest.mark.parametrize(
    ("policy", "now", "expected"),
    [
        ({}, NOON, Due()),
        ({}, later(minutes=59), Due()),
        ({}, later(hours=-3), Due()),
        ({}, later(hours=3), Due((later(hours=3),), later(hours=3), 2)),
        ({"missed": "skip"}, later(hours=3), Due((later(hours=3),), later(hours=3), 2)),
        ({"missed": "skip"}, later(hours=3, seconds=61), Due((), later(hours=3), 3)),
        (
            {"missed": "all"},
            later(hours=3, minutes=9),
            Due((later(hours=1), later(hours=2), later(hours=3)), later(hours=3), 0),
        ),
        (
            {"missed": "all", "missed_limit": 2},
            later(hours=9),
            Due((later(hours=8), later(hours=9)), later(hours=9), 7),
        ),
    ],
)
def test_what_is_due_since_noon(policy, now, expected):
    assert due(HOURLY, Policy(**policy), NOON, now) == expected


@pytest.mark.parametrize("missed", ["once", "skip", "all"])
@pytest.mark.parametrize("plan", [MINUTELY, Plan(every_seconds=1)])
def test_years_without_a_scheduler_are_settled_in_bounded_steps(plan, missed):
    found = due(plan, Policy(missed=missed), NOON, later(days=3_650))
    assert found.newest == later(days=3_650)
    assert len(found.ticks) == (100 if missed == "all" else 1)
    assert found.missed == MAX_COUNTED


def test_jitter_is_spread_over_its_range_and_differs_between_schedules():
    policy = Policy(jitter_seconds=100)
    delays = [policy.delay("a", later(minutes=n)).total_seconds() for n in range(500)]
    assert min(delays) < 5
    assert 95 < max(delays) <= 100
    assert policy.delay("a", NOON) != policy.delay("b", NOON)
    assert Policy().delay("a", NOON) == timedelta(0)


# --- preview ----------------------------------------


def test_a_preview_notes_where_the_clock_is_odd():
    plan = Plan(cron="30 * * * *", time_zone="America/New_York")
    ticks = preview(plan, datetime(2027, 11, 7, 5, tzinfo=UTC), 3)
    assert [f"{tick.local:%H:%M%z}" for tick in ticks] == ["01:30-0400", "01:30-0500", "02:30-0500"]
    assert ["first" in tick.note for tick in ticks] == [True, False, False]
    assert ["second" in tick.note for tick in ticks] == [False, True, False]
    assert [tick.note for tick in preview(Plan(every_seconds=60), NOON, 2)] == ["", ""]


# --- keywords ----------------------------------------


def test_times_without_an_offset_are_of_the_schedules_zone():
    one = declaration(
        "x",
        {
            "task": "a.b",
            "at": "2027-03-01T12:00",
            "start": datetime(2027, 3, 1),  # noqa: DTZ001
            "end": "2027-03-02T00:00+00:00",
            "time_zone": "Asia/Kathmandu",
        },
    )
    assert one.plan.at == datetime(2027, 3, 1, 6, 15, tzinfo=UTC)
    assert one.plan.start_at == datetime(2027, 2, 28, 18, 15, tzinfo=UTC)
    assert one.plan.end_at == datetime(2027, 3, 2, tzinfo=UTC)


def test_the_zone_of_the_project_is_the_default(settings):
    settings.TIME_ZONE = "Europe/Paris"
    assert declaration("x", {"task": "a.b", "cron": "@daily"}).plan.time_zone == "Europe/Paris"


def test_all_that_is_wrong_in_a_setting_is_told_at_once():
    with pytest.raises(InvalidSchedule) as caught:
        parse_schedules({"a": {"task": "a.b"}, "b": {"task": "a.b", "every": 0, "jitter": -1}})
    assert set(caught.value.errors) == {"'a' cron", "'b' every"}


def test_an_interval_of_whole_seconds_may_be_a_timedelta_or_a_number():
    for every in (90, 90.0, timedelta(seconds=90)):
        assert declaration("x", {"task": "a.b", "every": every}).plan.every_seconds == 90
