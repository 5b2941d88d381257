"""POST /jobs/ and /jobs/batch/: what is made, what is refused, and that refusals leave nothing."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.test import Client

from jobqueue.models import Action, IdempotencyKey, Job, JobTag
from jobqueue.permissions import owner_name
from tests.api.conftest import PREFIX, Api, problem
from tests.api.tasks import CHARGE, REBUILD, REPORT

KEY = {"Idempotency-Key": "k1"}
AHEAD = (datetime.now(UTC) + timedelta(days=30)).replace(minute=0, second=0, microsecond=0)
URLS = ("/jobs/", "/jobs/batch/")


@pytest.fixture
def kim(make_caller) -> Api:
    return make_caller("kim", "enqueue_job")


@pytest.fixture
def ann(make_caller) -> Api:
    return make_caller("ann", "enqueue_job")


def sent(url: str, **job) -> dict:
    """Return the body that enqueues one job at `url`."""
    job = {"task": CHARGE, "args": [7]} | job
    return job if url == "/jobs/" else {"jobs": [job]}


def places(document) -> list[str]:
    return [error["pointer"] for error in document["errors"]]


def nothing_stored() -> bool:
    return not any(model.objects.exists() for model in (Job, JobTag, IdempotencyKey, Action))


# --- what is made -----------------------------------------------------------------------------


def test_a_job_is_made_as_it_was_asked_for(kim: Api):
    job = {
        "task": CHARGE,
        "args": [7],
        "kwargs": {"note": "é"},
        "queue_name": "default",
        "priority": 5,
        "run_after": f"{AHEAD:%Y-%m-%dT08:00:00+02:00}",
        "expires": f"{AHEAD:%Y-%m-%dT08:00:00Z}",
        "tags": ["order:7", "order:7", "é"],
    }
    response = kim.post("/jobs/", job, **KEY)
    assert response.status_code == 201
    made = response.json()
    row = Job.objects.get()
    assert response["Location"] == made["url"] == f"{PREFIX}/jobs/{row.pk}/"
    assert "Idempotent-Replayed" not in response
    assert made["state"] == row.state == "scheduled"
    assert (row.task, row.queue, row.priority) == (CHARGE, "default", 5)
    assert row.arguments == {"args": [7], "kwargs": {"note": "é"}}
    assert row.run_at == AHEAD.replace(hour=6)
    assert row.expires_at == AHEAD.replace(hour=8)
    assert made["tags"] == list(JobTag.objects.order_by("id").values_list("tag", flat=True))
    assert made["tags"] == ["order:7", "é"]
    assert datetime.fromisoformat(made["run_at"]) == row.run_at
    assert row.created_by == f"kim#{kim.user.pk}"


def test_what_is_left_out_or_null_is_the_tasks_own(kim: Api):
    nothing = dict.fromkeys(("queue_name", "priority", "run_after", "expires", "tags"))
    made = kim.post("/jobs/", sent("/jobs/", **nothing), **KEY).json()
    assert (made["queue_name"], made["priority"], made["tags"]) == ("mail", 0, ["shop"])
    assert (made["state"], made["expires_at"]) == ("ready", None)
    assert made["run_at"] == made["enqueued_at"]


def test_a_duration_counts_from_now(kim: Api):
    kim.post("/jobs/", sent("/jobs/", run_after="PT15M", expires="P1D"), **KEY)
    row = Job.objects.get()
    assert row.run_at - row.enqueued_at == timedelta(minutes=15)
    assert row.expires_at - row.enqueued_at == timedelta(days=1)


def test_a_time_that_has_passed_means_now(kim: Api):
    made = kim.post("/jobs/", sent("/jobs/", run_after="2020-01-01T00:00:00Z"), **KEY).json()
    assert made["state"] == "ready"


def test_a_job_says_which_client_made_it_and_no_deed_of_an_operator_is_written_down(kim: Api):
    for path, key in (("/jobs/", KEY), ("/jobs/batch/", {"Idempotency-Key": "k2"})):
        assert kim.post(path, sent(path), **key).status_code == 201
    assert set(Job.objects.values_list("created_by", flat=True)) == {owner_name(kim.user)}
    assert not Action.objects.exists()


def test_a_batch_is_made_in_its_order_whatever_its_tasks(kim: Api):
    jobs = [
        {"task": CHARGE, "args": [1]},
        {"task": REPORT, "kwargs": {"report": "b"}},
        {"task": CHARGE, "kwargs": {"order_id": 2}, "tags": ["x", "y"]},
        {"task": REPORT, "args": ["a"]},
        {"task": REPORT, "args": ["b"]},
    ]
    response = kim.post("/jobs/batch/", {"jobs": jobs}, **KEY)
    assert response.status_code == 201
    outcomes = response.json()["jobs"]
    assert [each["already_enqueued"] for each in outcomes] == [False] * 4 + [True]
    assert outcomes[4]["id"] == outcomes[1]["id"]
    rows = [Job.objects.get(pk=each["id"]) for each in outcomes[:4]]
    assert [row.task for row in rows] == [CHARGE, REPORT, CHARGE, REPORT]
    assert [row.pk for row in rows] == sorted(row.pk for row in rows)
    assert set(JobTag.objects.filter(job_id=rows[2].pk).values_list("tag", flat=True)) == {"x", "y"}


def test_a_large_batch_takes_few_statements(kim: Api, django_assert_max_num_queries):
    jobs = [{"task": CHARGE, "args": [n], "tags": [f"order:{n}"]} for n in range(1_000)]
    with django_assert_max_num_queries(20):
        response = kim.post("/jobs/batch/", {"jobs": jobs}, **KEY)
    assert response.status_code == 201
    assert Job.objects.count() == JobTag.objects.count() == 1_000


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"task": 7}, "/task"),
        ({"args": {"order_id": 7}}, "/args"),
        ({"args": ["7"]}, "/args/0"),
        ({"args": [7, "", 1]}, "/args/2"),
        ({"kwargs": {"order_id": 7}}, "/kwargs/order_id"),
        ({"kwargs": {"to": 1}}, "/kwargs/to"),
        ({"args": []}, "/kwargs"),
        ({"queue_name": "nowhere"}, "/queue_name"),
        ({"queue_name": ""}, "/queue_name"),
        ({"priority": 101}, "/priority"),
        ({"priority": 10**9}, "/priority"),
        ({"priority": "5"}, "/priority"),
        ({"priority": True}, "/priority"),
        ({"priority": 1.0}, "/priority"),
        ({"run_after": "2020-01-31T08:00:00"}, "/run_after"),
        ({"run_after": "tomorrow"}, "/run_after"),
        ({"run_after": 60}, "/run_after"),
        ({"run_after": "-PT1S"}, "/run_after"),
        ({"run_after": "P100000D"}, "/run_after"),
        ({"run_after": "9999-12-31T23:59:59Z"}, "/run_after"),
        ({"run_after": "9" * 400}, "/run_after"),
        ({"run_after": "P" + "9" * 400 + "D"}, "/run_after"),
        ({"expires": "P0D"}, "/expires"),
        ({"unique_key": ""}, "/unique_key"),
        ({"unique_key": "x" * 256}, "/unique_key"),
        ({"tags": "x"}, "/tags"),
        ({"tags": ["x" * 101]}, "/tags/0"),
        ({"tags": [""]}, "/tags/0"),
        ({"tags": [str(n) for n in range(33)]}, "/tags"),
        ({"created_by": "root"}, "/created_by"),
        ({"state": "succeeded"}, "/state"),
        ({"max_attempts": 10**9}, "/max_attempts"),
        ({"fence": 1}, "/fence"),
        ({"backend": "other"}, "/backend"),
        ({"id": "01890a5d-ac96-774b-bcce-b302099a8057"}, "/id"),
    ],
)
def test_a_wrong_field_is_pointed_at_and_nothing_is_stored(kim: Api, wrong, place):
    for url, prefix in zip(URLS, ("", "/jobs/0"), strict=True):
        document = problem(kim.post(url, sent(url, **wrong), **KEY), 400, "invalid-fields")
        assert places(document) == [prefix + place]
    assert nothing_stored()


def test_expiry_before_the_start_is_refused(kim: Api):
    soon, later = (datetime.now(UTC) + timedelta(hours=n) for n in (1, 2))
    for start, end in (("PT2H", "PT1H"), (later.isoformat(), "PT1H"), ("PT2H", soon.isoformat())):
        body = sent("/jobs/", run_after=start, expires=end)
        document = problem(kim.post("/jobs/", body, **KEY), 400, "invalid-fields")
        assert places(document) == ["/expires"]
    assert nothing_stored()


@pytest.mark.parametrize(
    "task",
    ["os.system", "tests.api.tasks.for_staff", "tests.api.tasks.hidden", "", "no.such", "a" * 255],
)
def test_only_tasks_that_say_so_are_enqueued(kim: Api, task):
    for url in URLS:
        response = kim.post(url, sent(url, task=task), **KEY)
        assert response.status_code == 400
        assert response.json()["code"] in ("task-not-exposed", "invalid-fields")
    assert nothing_stored()


def test_no_module_is_imported_because_a_client_names_it(kim: Api):
    import sys

    module = "tests.app.moved"
    before = sys.modules.pop(module, None)
    try:
        problem(
            kim.post("/jobs/", sent("/jobs/", task=f"{module}.x"), **KEY), 400, "task-not-exposed"
        )
        assert module not in sys.modules
    finally:
        if before is not None:
            sys.modules[module] = before


def test_every_flaw_of_a_batch_is_told_and_none_of_it_is_made(kim: Api):
    jobs = [
        {"task": CHARGE, "args": [1]},
        {"task": "os.system", "args": ["true"]},
        {"task": CHARGE, "args": ["x"], "kwargs": {"to": 1}, "queue_name": "nowhere"},
        {"task": REPORT, "args": ["a"]},
    ]
    document = problem(kim.post("/jobs/batch/", {"jobs": jobs}, **KEY), 400, "invalid-fields")
    assert places(document) == [
        "/jobs/1/task",
        "/jobs/2/kwargs/to",
        "/jobs/2/args/0",
        "/jobs/2/queue_name",
    ]
    assert nothing_stored()


@pytest.mark.parametrize("body", [{}, {"jobs": []}, {"jobs": {}}, {"jobs": [[]]}, {"jobs": [1]}])
def test_a_batch_is_a_list_of_jobs(kim: Api, body):
    problem(kim.post("/jobs/batch/", body, **KEY), 400, "invalid-fields")
    assert nothing_stored()


def test_a_batch_has_a_limit(kim: Api, settings):
    settings.JOBQUEUE = {"API": {"MAX_BATCH": 2}}
    job = {"task": CHARGE, "args": [7]}
    document = problem(kim.post("/jobs/batch/", {"jobs": [job] * 3}, **KEY), 400, "invalid-fields")
    assert places(document) == ["/jobs"]
    assert kim.post("/jobs/batch/", {"jobs": [job] * 2}, **KEY).status_code == 201


def test_options_narrow_what_a_client_may_ask_for(kim: Api, settings):
    settings.JOBQUEUE = {"API": {"MAX_PRIORITY": 0, "MIN_PRIORITY": -5, "MAX_DELAY": 60}}
    for wrong in ({"priority": 1}, {"priority": -6}, {"run_after": "PT61S"}):
        problem(kim.post("/jobs/", sent("/jobs/", **wrong), **KEY), 400, "invalid-fields")
    assert nothing_stored()


def test_arguments_that_are_too_large_are_refused(kim: Api):
    body = sent("/jobs/", kwargs={"note": "x" * 1_100_000})
    problem(kim.post("/jobs/", body, **KEY), 400, "payload-too-large")
    assert nothing_stored()


def test_without_the_permission_nothing_is_made(make_caller):
    api = make_caller()
    for url in URLS:
        problem(api.post(url, sent(url), **KEY), 403, "permission-denied")
    assert nothing_stored()


# --- unique keys ------------------------------------------------------------------------------


def test_a_twin_of_the_callers_own_is_answered_as_it_is(kim: Api):
    first = kim.post("/jobs/", {"task": REPORT, "args": ["a"]}, **KEY)
    second = kim.post("/jobs/", {"task": REPORT, "args": ["a"]}, **{"Idempotency-Key": "k2"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == first.json() | {"already_enqueued": True}
    assert second["Location"] == first["Location"]
    again = kim.post("/jobs/", {"task": REPORT, "args": ["a"]}, **{"Idempotency-Key": "k2"})
    assert (again.status_code, again.content) == (200, second.content)
    assert Job.objects.count() == 1


def test_a_given_key_makes_a_job_of_any_task_unique(kim: Api):
    for key in ("k1", "k2"):
        body = sent("/jobs/", unique_key="order:7")
        kim.post("/jobs/", body, **{"Idempotency-Key": key})
    assert Job.objects.get().unique_key == "order:7"


@pytest.mark.parametrize("task", [REPORT, REBUILD])
def test_a_twin_of_somebody_else_is_neither_told_nor_changed(kim: Api, ann: Api, task):
    made = kim.post("/jobs/", {"task": task, "args": ["a"]}, **KEY).json()
    before = Job.objects.values().get()
    jobs = [{"task": CHARGE, "args": [1]}, {"task": task, "args": ["a"]}]
    for url, body in zip(URLS, (jobs[1], {"jobs": jobs}), strict=True):
        response = ann.post(url, body, **KEY)
        document = problem(response, 409, "unique-key-taken")
        assert made["id"] not in response.content.decode()
        assert places(document) == ["/unique_key" if url == "/jobs/" else "/jobs/1/unique_key"]
    assert Job.objects.values().get() == before
    assert IdempotencyKey.objects.count() == 1


def test_who_sees_all_jobs_is_told_of_twins(kim: Api, make_caller):
    made = kim.post("/jobs/", {"task": REPORT, "args": ["a"]}, **KEY).json()
    boss = make_caller("boss", "enqueue_job", "view_job")
    found = boss.post("/jobs/", {"task": REPORT, "args": ["a"]}, **KEY)
    assert (found.status_code, found.json()["id"]) == (200, made["id"])


# --- idempotency ------------------------------------------------------------------------------


@pytest.mark.parametrize("url", URLS)
def test_a_repeated_request_is_answered_byte_for_byte(kim: Api, url):
    first = kim.post(url, sent(url, run_after="PT1H"), **KEY)
    Job.objects.all().delete()  # whatever becomes of the job
    again = kim.post(url, sent(url, run_after="PT1H"), **KEY)
    assert again["Idempotent-Replayed"] == "true"
    assert again.content == first.content
    del again.headers["Idempotent-Replayed"]
    headers = {n: v for n, v in first.items() if not n.startswith("RateLimit")}
    assert {n: v for n, v in again.items() if not n.startswith("RateLimit")} == headers
    assert not Job.objects.exists()


SAME = [
    '{"task":"T","args":[7],"kwargs":{"note":"é"}}',
    '{ "kwargs" : {"note":"\\u00e9"}, "args":[ 7 ], "task":"T", "priority": null }',
]
OTHER = [
    '{"task":"T","args":[8],"kwargs":{"note":"é"}}',
    '{"task":"T","kwargs":{"note":"é","order_id":7}}',
    '{"task":"T","args":[7],"kwargs":{"note":"e\\u0301"}}',
    '{"task":"T","args":[7],"kwargs":{"note":"é"},"priority":0}',
    '{"task":"T","args":[7],"kwargs":{"note":"é"},"tags":[]}',
    '{"task":"R","args":["a"]}',
]
"""The same letter decomposed is another text; what is given as its default was given."""


def text(body: str) -> str:
    return body.replace('"T"', f'"{CHARGE}"').replace('"R"', f'"{REPORT}"')


@pytest.mark.parametrize("body", SAME)
def test_neither_order_nor_space_nor_escapes_make_another_request(kim: Api, body):
    first = kim.post("/jobs/", text(SAME[0]), **KEY)
    assert kim.post("/jobs/", text(body), **KEY).content == first.content


@pytest.mark.parametrize("body", OTHER)
def test_another_body_under_the_key_is_refused_and_tells_nothing(kim: Api, body):
    made = kim.post("/jobs/", text(SAME[0]), **KEY).json()
    response = kim.post("/jobs/", text(body), **KEY)
    problem(response, 409, "idempotency-key-reused")
    assert made["id"] not in response.content.decode()
    assert Job.objects.count() == 1


@pytest.mark.parametrize("pair", [(1, 1.0), (1, True), (1, "1"), (0, False), (None, "")])
def test_numbers_text_and_truth_are_four_values(pair):
    from jobqueue.control import request_key

    one, other = (request_key("c", "r", "k", {"args": [value]}) for value in pair)
    assert one.fingerprint != other.fingerprint


def test_times_that_are_the_same_moment_are_the_same(kim: Api):
    one = kim.post("/jobs/", sent("/jobs/", run_after=f"{AHEAD:%Y-%m-%dT08:00:00+02:00}"), **KEY)
    two = kim.post("/jobs/", sent("/jobs/", run_after=f"{AHEAD:%Y-%m-%dT06:00:00Z}"), **KEY)
    assert two.content == one.content


def test_a_key_is_its_callers_and_its_routes(kim: Api, ann: Api):
    answers = [api.post(url, sent(url), **KEY) for api in (kim, ann) for url in URLS]
    assert [answer.status_code for answer in answers] == [201] * 4
    assert Job.objects.count() == 4


def test_a_key_outlives_the_name_of_its_caller(kim: Api):
    first = kim.post("/jobs/", sent("/jobs/"), **KEY)
    type(kim.user).objects.update(username="kimberly")
    assert kim.post("/jobs/", sent("/jobs/"), **KEY).content == first.content


def test_a_refused_request_leaves_its_key_free(kim: Api):
    assert kim.post("/jobs/", sent("/jobs/", args=["x"]), **KEY).status_code == 400
    assert kim.post("/jobs/", sent("/jobs/"), **KEY).status_code == 201


def test_what_is_no_longer_offered_is_still_answered(kim: Api, monkeypatch):
    from jobqueue.engine.registry import registry

    first = kim.post("/jobs/", sent("/jobs/"), **KEY)
    monkeypatch.delitem(registry._tasks, CHARGE)
    assert kim.post("/jobs/", sent("/jobs/"), **KEY).content == first.content


@pytest.mark.parametrize("key", ["k" * 255, "01890a5d-ac96-774b-bcce-b302099a8057", "~ a!,;=/"])
def test_any_printable_key_is_taken_whole(kim: Api, key):
    kim.post("/jobs/", sent("/jobs/"), **{"Idempotency-Key": key})
    assert IdempotencyKey.objects.get().key == key


def test_a_quoted_key_is_the_same_as_a_bare_one(kim: Api):
    first = kim.post("/jobs/", sent("/jobs/"), **{"Idempotency-Key": '"a\\"b"'})
    assert IdempotencyKey.objects.get().key == 'a"b'
    assert kim.post("/jobs/", sent("/jobs/"), **{"Idempotency-Key": 'a"b'}).content == first.content


@pytest.mark.parametrize("key", ["", " ", '""', "k" * 256, "é", "a\tb", "a\x7fb"])
def test_a_key_of_another_shape_is_refused_never_cut(kim: Api, key):
    response = kim.post("/jobs/", sent("/jobs/"), **{"Idempotency-Key": key})
    document = problem(response, 400, "invalid-idempotency-key")
    assert document["errors"][0]["header"] == "Idempotency-Key"
    assert nothing_stored()


def test_tokens_must_send_a_key_and_sessions_need_not(kim: Api, settings):
    refused = problem(kim.post("/jobs/", sent("/jobs/")), 400, "idempotency-key-required")
    assert refused["detail"].startswith("The header Idempotency-Key is missing")
    by_session = Api(kim.user)
    by_session.client = Client(raise_request_exception=False)
    by_session.client.force_login(kim.user)
    assert [by_session.post("/jobs/", sent("/jobs/")).status_code for _ in "ab"] == [201, 201]
    settings.JOBQUEUE = {"API": {"IDEMPOTENCY_KEY": "always"}}
    problem(by_session.post("/jobs/", sent("/jobs/")), 400, "idempotency-key-required")
    settings.JOBQUEUE = {"API": {"IDEMPOTENCY_KEY": "never"}}
    assert kim.post("/jobs/", sent("/jobs/")).status_code == 201
    assert kim.post("/jobs/", sent("/jobs/"), **KEY).status_code == 201
    assert IdempotencyKey.objects.count() == 1


def test_the_answer_tells_nothing_of_the_arguments(kim: Api):
    body = sent("/jobs/", kwargs={"note": "secret-4711"})
    response = kim.post("/jobs/", body, **KEY)
    kept = IdempotencyKey.objects.get()
    assert b"4711" not in response.content
    assert bytes(kept.body) == response.content
    assert json.loads(bytes(kept.body))["id"] == response.json()["id"]


# --- transactions of the project --------------------------------------------------------------


def in_a_transaction(get_response):
    """A middleware as projects have them."""

    def middleware(request):
        with transaction.atomic():
            return get_response(request)

    return middleware


@pytest.mark.django_db(transaction=True)
def test_a_middleware_with_a_transaction_is_an_error_and_nothing_is_stored(
    kim: Api, settings, caplog
):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.in_a_transaction"]
    problem(kim.post("/jobs/", sent("/jobs/"), **KEY), 500, "internal-error")
    assert "perhaps by a middleware" in caplog.text
    assert nothing_stored()
