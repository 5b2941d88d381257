"""What is told without the permission to see payloads. No database."""

import pytest

from jobqueue.disclosure import shown_error, shown_key, shown_words
from jobqueue.filters import parse, refusal_of, shown_filter


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Connection unexpectedly closed", "Connection unexpectedly closed"),
        ("no such order: 42", "no such order: #"),
        ("'hunter2'", "'…'"),
        ("no user kim@example.com", "no user <address>"),
        ("broken\nDETAIL: Key (email)=(kim) exists", "broken"),
        ("invalid literal: 'cut in the mid", "invalid literal: …"),
        ("can't parse 'a' and \"b", "can't parse '…' and …"),
        (f"not {'x' * 490} 'it is cut here too'", f"not {'x' * 490} …"),
        ("", ""),
    ],
)
def test_without_the_permission_errors_are_told_without_values(message, told):
    assert shown_error(message, task="app.task", may_see_payload=False) == told


def test_with_the_permission_they_are_told_but_for_secrets_that_a_cut_would_not_show_whole():
    message = "lost: no order 42\nredis://kim:hunter2@cache"
    assert shown_error(message, task="t", may_see_payload=True).endswith(
        "redis://kim:[hidden]@cache"
    )
    cut = shown_error(message, task="t", may_see_payload=True, most=message.index("er2@"))
    assert "hunt" not in cut


def test_words_and_keys_are_told_to_whoever_may_see_payloads():
    assert shown_words("token=abc x", task="t", may_see_payload=True) == "token=[hidden] x"
    assert shown_words("order 42", task="t", may_see_payload=False) is None
    assert shown_key("order:42", may_see_payload=True) == "order:42"
    assert shown_key("order:42", may_see_payload=False) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("state:dead queue:mail", "state:dead queue:mail"),
        ("state:dead args.email:kim", "state:dead args.email:[hidden]"),
        ("-message:42 tag:order:42", "-message:[hidden] tag:order:42"),
        ("order", "[hidden]"),
        ("a filter of another version?:", "[hidden]"),
    ],
)
def test_filters_of_others_are_told_without_what_may_not_be_asked(text, told):
    assert shown_filter(text, may_see_payload=False) == told
    secret = shown_filter("args.password:x args.order:42", may_see_payload=True)
    assert secret == "args.password:[hidden] args.order:42"


def test_refusals_say_what_is_needed():
    asked = parse("state:dead args.order:42")
    refusal = refusal_of(asked, may_see_payload=False)
    assert refusal is not None
    assert refusal.permission == "jobqueue.view_job_payload"
    assert "args.order" in str(refusal)
    assert refusal_of(asked, may_see_payload=True) is None
    secret = refusal_of(parse("args.card.pin:1"), may_see_payload=True)
    assert secret is not None
    assert not secret.permission
