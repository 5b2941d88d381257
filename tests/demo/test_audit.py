"""The demo's audit finds what was planted, names it, and finds nothing else."""

from uuid import UUID

import pytest

from project.demo.audit import audit, duplicates, missing
from project.demo.facts import Evidence, JobFact
from project.demo.library_audit import read_findings
from tests.demo.evidence import EFFECTS, clean, with_effect


def test_a_clean_run_has_no_violations():
    assert audit(clean()) == []


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_doubled_effect_is_named(effect):
    evidence = with_effect(effect, {2: 1})
    assert texts(evidence) == [f"duplicate: {effect} of order 2 happened 2 times"]
    assert duplicates(evidence, effect) == 1


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_that_never_happened_is_lost(effect):
    evidence = with_effect(effect, {3: -1})
    assert texts(evidence) == [f"lost: {effect} of order 3 never happened"]
    assert missing(evidence) == 1


def test_an_effect_of_an_order_that_does_not_exist_is_stray():
    assert texts(with_effect("mail", {99: 1})) == ["stray: mail for order 99, which does not exist"]


def test_an_accepted_order_that_is_not_in_the_database_is_lost():
    evidence = clean(accepted=frozenset({1, 2, 3, 4}))
    assert texts(evidence) == ["lost: order 4 was accepted and is not in the database"]


def test_an_order_committed_without_an_answer_still_needs_its_effects():
    assert audit(clean(accepted=frozenset({1, 2}))) == []


@pytest.mark.parametrize("state", ["ready", "running", "retrying", "scheduled", "blocked"])
def test_a_job_that_has_not_ended_is_a_violation(state):
    assert texts(with_job(state)) == [f"unfinished: mail {UUID(int=7)} is still {state}"]


def test_a_dead_letter_is_a_violation_with_its_error():
    assert texts(with_job("dead", "RemoteError")) == [
        f"dead: mail {UUID(int=7)} is dead: RemoteError"
    ]


def test_an_order_that_the_web_refused_is_a_violation():
    assert texts(clean(refused=("order 8: 500",))) == ["refused: order 8: 500"]


def test_a_triple_counts_as_two_duplicates():
    assert duplicates(with_effect("stock", {1: 2}), "stock") == 2


def test_the_library_s_findings_are_taken_over():
    found = read_findings(
        1, '{"violations": [{"check": "gap", "job_id": "7", "detail": "2 of 3"}]}', ""
    )
    assert [str(violation) for violation in found] == ["engine: gap of job 7: 2 of 3"]


def test_a_clean_library_audit_adds_nothing():
    assert read_findings(0, '{"violations": []}', "") == []


@pytest.mark.parametrize(
    ("code", "output"), [(1, "Traceback"), (1, "{}"), (0, ""), (1, '{"violations": []}')]
)
def test_a_library_audit_that_cannot_be_believed_is_a_violation(code, output):
    assert [violation.kind for violation in read_findings(code, output, "error")] == ["engine"]


def texts(evidence: Evidence) -> list[str]:
    return [str(violation) for violation in audit(evidence)]


def with_job(state: str, error: str = "") -> Evidence:
    return clean(jobs=[JobFact(UUID(int=7), "mail", state, error)])
