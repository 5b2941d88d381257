"""Tables and values as text."""

import argparse
from datetime import UTC, datetime

import pytest

from jobqueue.management.formats import age, budget, clock_time, duration, whole
from jobqueue.management.jobs_commands.table import cut, printable, render, text_width


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (-1, "0.0 s"),
        (0.25, "0.2 s"),
        (42, "42 s"),
        (119, "119 s"),
        (120, "2.0 min"),
        (3_600, "60 min"),
        (7_200, "2.0 h"),
        (10 * 86_400, "10 d"),
    ],
)
def test_ages_take_their_largest_fitting_unit(seconds, text):
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5m", 90), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600)],
)
def test_durations_are_read_with_their_unit(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "7 days", "-1", "1e9d", "nan", "9999999d"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        duration(text)


@pytest.mark.parametrize("text", ["0", "11", "x", "1.0", "9" * 40])
def test_numbers_out_of_range_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        whole(1, 10)(text)


def test_times_carry_their_offset(settings):
    instant = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
    assert clock_time(instant) == "2026-07-01 12:00:00+00:00"
    settings.TIME_ZONE = "Europe/Berlin"
    assert clock_time(instant) == "2026-07-01 14:00:00+02:00"
    assert clock_time(instant.replace(tzinfo=None)) == "2026-07-01 12:00:00"
    assert clock_time(None) == "–"


def test_budget_without_a_limit():
    assert (budget(2, 5), budget(2, None)) == ("2/5", "2/∞")


def test_columns_are_aligned_by_what_a_terminal_shows():
    lines = render(["name", "n"], [["日本", "1"], ["e\u0301a", "10"]], right=[1])
    assert [text_width(line) for line in lines] == [len("name   n")] * 3
    assert lines[1] == "日本   1"


def test_last_column_is_cut_to_the_width():
    (_, line) = render(["a", "b"], [["x", "y" * 50]], width=20)
    assert line == "x  " + "y" * 16 + "…"


def test_colors_do_not_change_the_widths():
    lines = render(
        ["a", "b"], [["x", "y"]], paint=lambda n, text: lambda cell: f"<{cell}>" if n == 0 else cell
    )
    assert lines[1] == "<x>  y"


def test_control_characters_become_visible():
    assert printable("a\nb\x1b[0m\ud800") == "a\\nb\\x1b[0m\\ud800"
    assert cut("abcdef", 4) == "abc…"
