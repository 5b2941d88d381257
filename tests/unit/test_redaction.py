"""Secrets are hidden before anything is shown; and if that fails, nothing is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue import events, redaction, task
from jobqueue.redaction import FAILED, HIDDEN, hide_in_text, hide_secrets, is_secret_name, redact

HERE = __name__


@task
def log_in(user, password, *, remember=True):
    pass


@task(takes_context=True)
def call(context, api_key, url):
    pass


@pytest.mark.parametrize(
    "name",
    ["password", "PASSWORD", "db_password", "newPassword", "passwd", "secret", "client-secret",
     "token", "accessToken", "api_key", "API-Key", "Authorization", "private_key", "cookie",
     "sessionid", "signature", "csrfmiddlewaretoken", "pwd", "auth", "pin", "cvv", "iban"],
)  # fmt: skip
def test_usual_names_of_secrets_are_known(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["author", "user", "spin", "key", "passenger", "id", "card", ""])
def test_other_names_are_no_secrets(name):
    assert not is_secret_name(name)


def test_secrets_are_hidden_at_any_depth():
    value = {"a": [{"token": "x", "n": 1}], "secret": {"deep": [1]}, "ok": None}
    assert hide_secrets(value) == {"a": [{"token": HIDDEN, "n": 1}], "secret": HIDDEN, "ok": None}


@pytest.mark.parametrize(
    ("name", "args", "shown"),
    [
        ("log_in", ["kim", "hunter2"], ["kim", HIDDEN]),
        ("call", ["k-123", "https://x"], [HIDDEN, "https://x"]),
        ("no_such_task", ["kim", "hunter2"], ["kim", "hunter2"]),
        ("log_in", [{"token": "x"}], [{"token": HIDDEN}]),
        ("log_in", ["a", "b", "too", "many"], ["a", HIDDEN, "too", "many"]),
    ],
)
def test_arguments_by_position_are_hidden_by_their_parameter(name, args, shown):
    arguments = {"args": args, "kwargs": {"password": "hunter2"}}
    found = redact(arguments, task=f"{HERE}.{name}", part="arguments")
    assert found == {"args": shown, "kwargs": {"password": HIDDEN}}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://kim:hunter2@db/shop", f"postgresql://kim:{HIDDEN}@db/shop"),
        ("redis://:hunter2@cache:6379/0", f"redis://:{HIDDEN}@cache:6379/0"),
        ("https://x/?token=abc&n=1", f"https://x/?token={HIDDEN}&n=1"),
        ("password='hunter two' n=1", f"password={HIDDEN} n=1"),
        ('{"api_key": "k-1", "n": 1}', f'{{"api_key": {HIDDEN}, "n": 1}}'),
        ("Authorization: Bearer abcdef123", f"Authorization: Bearer {HIDDEN}"),
        ("DB_PASSWORD=hunter2", f"DB_PASSWORD={HIDDEN}"),
        ("no such order: 42", "no such order: 42"),
        ("mail kim@example.com", "mail kim@example.com"),
    ],
)
def test_secrets_in_text_are_hidden(text, shown):
    assert hide_in_text(text) == shown
    assert redact(text, task="t", part="error") == shown


def partial_hook(value, *, task, part):
    return "nothing" if task == "quiet" else hide_secrets(value, task=task, part=part)


def broken_hook(value, *, task, part):
    raise RuntimeError(f"cannot look at {value}")


def test_the_projects_hook_decides(settings):
    settings.JOBQUEUE = {"REDACT": f"{HERE}.partial_hook"}
    assert redact({"a": 1}, task="quiet", part="result") == "nothing"
    assert redact({"token": 1}, task="loud", part="result") == {"token": HIDDEN}


@pytest.mark.parametrize("path", [f"{HERE}.broken_hook", "no.such.hook", f"{HERE}.HERE"])
def test_where_the_hook_fails_nothing_is_shown_and_nothing_is_logged(settings, monkeypatch, path):
    seen = []
    monkeypatch.setattr(events, "_subscribers", [seen.append])
    settings.JOBQUEUE = {"REDACT": path}
    assert redact("hunter2", task="t", part="result") == FAILED
    (event,) = seen
    assert event.name == "redaction.failed"
    assert "hunter2" not in str(event)


def test_nothing_to_show_asks_nobody(settings):
    settings.JOBQUEUE = {"REDACT": "no.such.hook"}
    assert redaction.redact_text("", task="t", part="error") == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON, st.sampled_from(sorted(redaction.PARTS)))
def test_any_value_is_shown_or_hidden_and_nothing_breaks(value, part):
    assert redact(value, task="t", part=part) != FAILED
    assert "hunter2" not in str(redact({"password": [value, "hunter2"]}, task="t", part=part))
