"""``jobs limits``: the table, and other numbers."""

import pytest

from jobqueue.models import Limit
from jobqueue.storage.records import CodedLimit


@pytest.fixture
def coded(storage):
    limit = CodedLimit(key="customer", running=2, rate=None, per=None, source="app.tasks.sync")
    storage.seed_limits([limit], ["default"])


def test_limits_are_listed_with_who_set_them(jobs, coded):
    assert jobs("limits", "--queue", "mail", "--rate", 100, "--per", 60).out.strip() == "1 set"
    lines = jobs("--actor", "kim", "limits").out.splitlines()
    assert [line.split()[0] for line in lines] == ["limit", "customer", "queue:mail"]
    assert lines[1].endswith("code")
    assert "100 in 60 s" in lines[2]
    assert [one["key"] for one in jobs("limits", "--json").json] == ["customer", "queue:mail"]


def test_a_limit_is_set_lifted_and_reset(jobs, coded):
    assert jobs("limits", "customer", "--running", 1, "--reason", "slow").out.strip() == "1 set"
    assert (Limit.objects.get().running, Limit.objects.get().set_reason) == (1, "slow")
    assert jobs("limits", "customer", "--lift").out.strip() == "1 lifted"
    assert Limit.objects.get().running is None
    assert jobs("limits", "customer", "--reset").out.strip() == "1 reset"
    assert Limit.objects.get().running == 2
    assert jobs("limits", "customer", "--reset").code == 1


def test_a_queue_that_nothing_has_heard_of_is_limited_on_request_only(jobs):
    words = ("limits", "--queue", "later", "--running", 1)
    assert "--force" in str(jobs(*words).error)
    assert jobs(*words, "--force").out.strip() == "1 set"
    assert Limit.objects.get().key == "queue:later"


def test_without_any_limit_it_says_so(jobs):
    assert "has a limit" in jobs("limits").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["customer"], "give its key"),
        (["--running", 1], "give its key"),
        (["customer", "--lift", "--reset"], "give its key"),
        (["customer", "--queue", "mail", "--lift"], "not both"),
        (["custmer", "--running", 1], "no limit 'custmer'"),
        (["customer", "--rate", 1], "belong together"),
        (["--queue", "mial", "--running", 1], "Did you mean mail?"),
    ],
    ids=str,
)
def test_unclear_words_change_nothing_and_say_what_to_do(jobs, coded, words, says):
    ran = jobs("limits", *words)
    assert ran.code != 0
    assert says in str(ran.error)
    assert Limit.objects.get().set_by == ""
