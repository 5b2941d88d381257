"""Cron against a wall clock that is looked at once a minute, and what is refused."""

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobqueue.cron import NAMES, Cron, cron_of, fields_of, zone_of
from tests.unit.wall_clock import MINUTE, MINUTES, START, Expression, clock_of

ZONES = [
    "Europe/Paris",
    "America/New_York",
    "Australia/Lord_Howe",  # changes by half an hour
    "America/Santiago",  # has days without a midnight, and days whose last hour comes twice
    "America/Havana",  # has days whose midnight comes twice
]
END = START + MINUTES * MINUTE
ALL_HOURS = frozenset(range(24))
SECOND = timedelta(seconds=1)
A_DAY = 1_440
long = pytest.mark.sqlite_only("asks no database, and one of the two runs is enough")


def plain(text: str, minutes: set[int], hours: set[int] | None = None) -> Expression:
    return Expression(text, frozenset(minutes), frozenset(hours or ALL_HOURS), hours is None)


HOURLY = plain("0 * * * *", {0})
QUARTERS = plain("*/15 * * * *", {0, 15, 30, 45})
AT_HALF_PAST_ONE = plain("30 1 * * *", {30}, {1})
AT_HALF_PAST_TWO = plain("30 2 * * *", {30}, {2})
AT_MIDNIGHT = plain("@daily", {0}, {0})


def walk(cron: Cron, start: datetime, end: datetime, most: int = 10**6) -> list[datetime]:
    """Return the ticks after `start` and before `end`, as a scheduler would meet them."""
    ticks: list[datetime] = []
    while len(ticks) < most and (found := cron.after(ticks[-1] if ticks else start)) is not None:
        if found >= end:
            break
        ticks.append(found)
    return ticks


# --- two years ----------------------------------------


@long
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "expression", [HOURLY, AT_HALF_PAST_ONE, AT_HALF_PAST_TWO, AT_MIDNIGHT], ids=lambda e: e.text
)
def test_two_years_of_ticks_are_those_of_the_wall_clock(zone: str, expression: Expression) -> None:
    ticks = walk(cron_of(expression.text, zone), START - SECOND, END)
    assert ticks == clock_of(zone).ticks(expression)


@long
@pytest.mark.parametrize("zone", ZONES)
def test_quarters_of_an_hour_around_every_change_of_the_clock(zone: str) -> None:
    clock = clock_of(zone)
    expected = clock.ticks(QUARTERS)
    assert len(clock.changes) == 4
    for change in clock.changes:
        start = START + (change - A_DAY) * MINUTE
        end = start + 2 * A_DAY * MINUTE
        between = expected[bisect_right(expected, start) : bisect_left(expected, end)]
        assert walk(cron_of(QUARTERS.text, zone), start, end) == between


@st.composite
def lists(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int]]:
    """A field that is a list of numbers and ranges, with what it matches."""
    texts, values = [], set()
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(low, high))
        last = draw(st.integers(first, high))
        step = draw(st.integers(1, 4))
        if draw(st.booleans()):
            texts.append(str(first))
            values.add(first)
        else:
            texts.append(f"{first}-{last}" + (f"/{step}" if first < last else ""))
            values.update(range(first, last + 1, step if first < last else 1))
    return ",".join(texts), frozenset(values)


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int]]:
    """A field: a star, every n-th, or a list."""
    everything = range(low, high + 1)
    kind = draw(st.sampled_from(["star", "step", "list"]))
    if kind == "star":
        return "*", frozenset(everything)
    if kind == "step":
        step = draw(st.integers(1, high))
        return f"*/{step}", frozenset(everything[::step])
    return draw(lists(low, high))


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    """Any expression of numbers, and what it means."""
    minute, hour = draw(fields(0, 59)), draw(fields(0, 23))
    day, month, weekday = draw(fields(1, 31)), draw(fields(1, 12)), draw(fields(0, 6))
    either = not day[0].startswith("*") and not weekday[0].startswith("*")

    def has_day(date) -> bool:
        days = date.day in day[1], (date.weekday() + 1) % 7 in weekday[1]
        return date.month in month[1] and (any(days) if either else all(days))

    return Expression(
        " ".join(field[0] for field in (minute, hour, day, month, weekday)),
        minute[1],
        hour[1],
        hour[0].startswith("*") or len(hour[1]) == 24,
        has_day,
    )


def instants(first_year: int, last_year: int) -> st.SearchStrategy[datetime]:
    """Instants of some years, the last not among them, but for their outermost days."""
    first = datetime(first_year, 1, 2, tzinfo=UTC)
    days = (datetime(last_year, 1, 1, tzinfo=UTC) - first).days - 1
    return st.timedeltas(timedelta(0), timedelta(days=days)).map(lambda past: first + past)


def near_a_change(zone: str) -> st.SearchStrategy[datetime]:
    """Instants within some hours of a change of the clock: also inside the repeated hour."""
    return st.builds(
        lambda change, seconds: START + change * MINUTE + timedelta(seconds=seconds),
        st.sampled_from(clock_of(zone).changes),
        st.integers(-7_200, 7_200),
    )


@long
@settings(deadline=None, max_examples=20)
@given(data=st.data(), zone=st.sampled_from(ZONES), expression=expressions())
def test_any_expression_started_anywhere_ticks_with_the_wall_clock(data, zone, expression) -> None:
    try:
        cron = cron_of(expression.text, zone)
    except ValueError:  # the only way for an expression of valid numbers
        assert clock_of(zone).ticks(expression) == []
        return
    expected = clock_of(zone).ticks(expression)
    somewhere = instants(2026, 2028)
    for start in [data.draw(near_a_change(zone)) for _ in range(3)] + [data.draw(somewhere)]:
        position = bisect_right(expected, start)
        assert walk(cron, start, END, 20) == expected[position : position + 20]
        if position:
            assert cron.before(start) == expected[position - 1]


@long
@settings(deadline=None, max_examples=50)
@given(
    expression=expressions(),
    zone=st.sampled_from(ZONES),
    at=instants(1980, 9940),
)
@example(plain("30 1 * * *", {30}, {1}), "Europe/Paris", datetime(2026, 10, 25, 1, 10, tzinfo=UTC))
def test_the_tick_after_the_last_one_is_the_next_one(expression, zone, at) -> None:
    try:
        cron = cron_of(expression.text, zone)
    except ValueError:
        return
    following, last = cron.after(at), cron.before(at)
    assert following is None or following > at
    assert last is None or last <= at
    if following is not None:
        assert cron.before(following) == following
        assert last is None or cron.before(following - SECOND) == last
    if last is not None:
        assert cron.after(last) == following


# --- the stated rules, by example ----------------------------------------


@pytest.mark.parametrize(
    ("text", "zone", "start", "expected"),
    [
        # 29 March 2026: Paris skips 02:00 to 03:00.
        ("30 2 * * *", "Europe/Paris", "2026-03-29T00:00Z", ["03-29T01:00", "03-30T00:30"]),
        ("*/20 2 * * *", "Europe/Paris", "2026-03-29T00:00Z", ["03-29T01:00", "03-30T00:00"]),
        ("0 * * * *", "Europe/Paris", "2026-03-29T00:00Z", ["03-29T01:00", "03-29T02:00"]),
        # 25 October 2026: it shows 02:00 to 03:00 twice.
        ("30 2 * * *", "Europe/Paris", "2026-10-24T12:00Z", ["10-25T00:30", "10-26T01:30"]),
        ("30 2 * * *", "Europe/Paris", "2026-10-25T00:45Z", ["10-26T01:30", "10-27T01:30"]),
        ("30 * * * *", "Europe/Paris", "2026-10-25T00:10Z", ["10-25T00:30", "10-25T01:30"]),
        # Started inside the repeated hour, before and after the clock is put back.
        ("30 1 * * *", "America/New_York", "2026-11-01T05:40Z", ["11-02T06:30", "11-03T06:30"]),
        ("30 1 * * *", "America/New_York", "2026-11-01T06:10Z", ["11-02T06:30", "11-03T06:30"]),
        ("30 * * * *", "America/New_York", "2026-11-01T05:40Z", ["11-01T06:30", "11-01T07:30"]),
        # Half an hour is skipped, and later repeated.
        ("0 */2 * * *", "Australia/Lord_Howe", "2026-04-04T13:00Z", ["04-04T15:30", "04-04T17:30"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", ["10-03T15:30", "10-04T15:15"]),
    ],
)
def test_ticks_around_a_change_of_the_clock(text, zone, start, expected) -> None:
    ticks = walk(cron_of(text, zone), datetime.fromisoformat(start), END, len(expected))
    assert [f"{tick:%m-%dT%H:%M}" for tick in ticks] == expected


def test_the_next_29_february_is_found_on_one() -> None:
    cron = cron_of("0 9 29 2 *", "UTC")
    day = datetime(2028, 2, 29, 9, tzinfo=UTC)
    assert cron.after(day) == day.replace(year=2032)
    assert cron.after(day - SECOND) == day
    assert cron.before(day) == day


def test_parts_of_a_second_lose_no_tick() -> None:
    cron = cron_of("* * * * *", "Europe/Paris")
    at = datetime(2026, 5, 1, 10, 0, 0, 999_999, tzinfo=UTC)
    assert cron.after(at) == datetime(2026, 5, 1, 10, 1, tzinfo=UTC)
    assert cron.before(at) == datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
    assert cron.after(at - timedelta(seconds=1)) == datetime(2026, 5, 1, 10, 0, tzinfo=UTC)


def test_the_end_of_time_is_no_error() -> None:
    late = datetime(9999, 12, 30, tzinfo=UTC)
    assert cron_of("0 0 1 1 *", "Pacific/Kiritimati").after(late) is None
    assert cron_of("*/5 * * * *", "Pacific/Kiritimati").after(late + timedelta(days=1)) is None
    assert cron_of("0 0 1 1 *", "Etc/GMT+12").before(datetime(1970, 1, 1, tzinfo=UTC)) is not None


# --- what is refused ----------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "0 0 31 2 *",
        "0 0 30 2 *",
        "* * 31 4 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 30 2 */2",
        "*/0 * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "",
        "* * * *",
        "0 * * * * *",
        "@reboot",
        "@every 5m",
        "every day",
        "١ * * * *",
        "9" * 200 + " * * * *",
        "*," * 200 + "* * * * *",
        "a\x00b * * * *",
        None,
        5,
    ],
)
def test_what_never_fires_or_is_malformed_is_refused(text) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        fields_of(text)


@pytest.mark.parametrize("text", ["0 9 29 2 *", "0 0 * * 7", "0 0 * * 5-7", "0 0 L * mon#1"])
def test_what_is_rare_or_unusual_is_accepted(text: str) -> None:
    assert cron_of(text, "UTC").after(START) is not None


def test_sunday_is_both_0_and_7() -> None:
    sundays = [walk(cron_of(f"0 0 * * {day}", "UTC"), START, END) for day in ("0", "7", "SUN")]
    assert sundays[0] == sundays[1] == sundays[2]


@pytest.mark.parametrize("name", NAMES)
def test_names_stand_for_five_fields(name: str) -> None:
    assert fields_of(f" {name.upper()} ") == NAMES[name]


@pytest.mark.parametrize(
    "name",
    ["Mars/Olympus", "", "Europe", "../../etc/passwd", "/etc/passwd", "a\x00b", "x" * 65, None, 3],
)
def test_an_unknown_time_zone_is_refused(name) -> None:
    with pytest.raises(ValueError, match="not a time zone"):
        zone_of(name)


def test_words_say_when() -> None:
    assert cron_of("0 6 * * mon-fri", "UTC").words() == "At 06:00 on Monday through Friday"
