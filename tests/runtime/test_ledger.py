"""The ledger: what a supervisor can read of a child that is gone."""

import os

import pytest

from jobqueue.ids import new_job_id
from jobqueue.runtime.ledger import Counters, Ledger


@pytest.fixture
def ledger():
    """The child's side."""
    made = Ledger.create(3)
    yield made
    made.close()


@pytest.fixture
def reader(ledger: Ledger):
    """The supervisor's side: another mapping of the same memory."""
    made = Ledger(os.dup(ledger.descriptor), 3)
    yield made
    made.close()


def test_an_empty_ledger_accuses_nobody(ledger: Ledger, reader: Ledger):
    assert reader.started() == set()
    assert reader.counters() == Counters()


def test_a_job_that_started_may_be_running(ledger: Ledger, reader: Ledger):
    one, two = new_job_id(), new_job_id()
    ledger.start(one, 1, 60.0)
    ledger.start(two, 2**63 - 1, 60.0)
    assert reader.started() == {(one, 1), (two, 2**63 - 1)}


def test_a_job_whose_code_has_ended_did_not_kill_the_process(ledger: Ledger, reader: Ledger):
    job = new_job_id()
    entry = ledger.start(job, 1, 60.0)
    assert reader.unwritten() == set()
    ledger.ended(entry)
    assert (reader.started(), reader.unwritten()) == (set(), {(job, 1)})
    ledger.clear(entry)
    assert (reader.started(), reader.unwritten()) == (set(), set())


def test_a_cleared_entry_is_used_again(ledger: Ledger, reader: Ledger):
    for fence in range(1, 20):
        job = new_job_id()
        entry = ledger.start(job, fence, 60.0)
        assert reader.started() == {(job, fence)}
        ledger.ended(entry)
        ledger.clear(entry)


def test_an_entry_is_not_given_away_before_its_outcome_is_committed(ledger: Ledger):
    entries = [ledger.start(new_job_id(), 1, 60.0) for _ in range(3)]
    for entry in entries:
        ledger.ended(entry)
    with pytest.raises(IndexError):
        ledger.start(new_job_id(), 1, 60.0)
    ledger.clear(entries[0])
    assert ledger.start(new_job_id(), 1, 60.0) == entries[0]


def test_counters_are_what_the_child_last_published(ledger: Ledger, reader: Ledger):
    ledger.count(Counters(claimed=5, succeeded=3, failed=1, running=1))
    counters = Counters(6, 4, 1, 1, 2, 1)
    ledger.count(counters)
    assert reader.counters() == counters


def test_the_memory_is_there_after_the_childs_own_mapping_is_gone(ledger: Ledger):
    child = Ledger(os.dup(ledger.descriptor), 3)
    job = new_job_id()
    child.start(job, 1, 60.0)
    child.close()
    assert ledger.started() == {(job, 1)}
