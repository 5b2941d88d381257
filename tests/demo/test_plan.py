"""Options are checked before anything starts, and the figures of a run follow from them."""

import argparse

import pytest

from jobqueue import conf
from project.demo.options import DemoError, DemoOptions
from project.demo.plan import Plan
from project.management.commands.demo import switch


@pytest.mark.parametrize(
    "wrong", [{"orders": 0}, {"orders": 10**6}, {"kill_every": -1}, {"fail_rate": 0.9}]
)
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(DemoError):
        DemoOptions(**wrong)


def test_a_misspelled_guard_is_refused():
    assert (switch("on"), switch("OFF")) == (True, False)
    with pytest.raises(argparse.ArgumentTypeError):
        switch("of")


@pytest.mark.parametrize(("orders", "seconds"), [(500, 25), (20, 1), (200, 10), (4000, 100)])
def test_the_load_lasts_as_long_as_its_orders_need(orders, seconds):
    assert plan(orders=orders).load_seconds == seconds


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("orders", [1, 2, 7, 500])
def test_some_orders_of_the_first_half_are_marked(orders, guard):
    marked = plan(orders=orders, guard=guard).marked
    assert marked
    assert all(0 <= number <= orders / 2 for number in marked)


def test_a_full_run_marks_more_orders_than_it_freezes():
    for guard in (True, False):
        full = plan(guard=guard)
        assert len(full.marked) > full.freezes


def test_a_full_run_must_kill_ten_times():
    assert plan().least_kills == 10
    assert plan(kill_every=0).least_kills == 0
    assert plan(kill_every=5).least_kills == 5


@pytest.mark.parametrize("guard", [True, False])
def test_the_engine_takes_the_options(guard):
    options, problems = conf.parse(plan(guard=guard).engine_options)
    assert problems == []
    assert (options.storage is None) is guard
    assert options.self_exit is options.end_sessions is guard


def plan(**options: object) -> Plan:
    return Plan(options=DemoOptions(**options))
