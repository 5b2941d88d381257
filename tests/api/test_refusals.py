"""What is refused before a view sees it: always with a problem."""

import io
import json

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.test import Client, RequestFactory
from rest_framework.response import Response

from jobqueue.api.access import SIGNED_IN, needs
from jobqueue.api.parsing import StrictJSONParser
from jobqueue.api.problems import Problem
from jobqueue.api.serializers import StrictSerializer
from jobqueue.api.views import ApiView
from tests.api.conftest import PREFIX, Api, problem


class Anything(StrictSerializer):
    def is_known(self, name: str) -> bool:
        return True


class Echo(ApiView):
    """Answers that the body was taken, or fails."""

    @needs(SIGNED_IN)
    def get(self, request): ...

    @needs(SIGNED_IN, body=Anything)
    def post(self, request):
        if "fail" in request.data:
            raise KeyError("what nobody may see")
        return Response({"is_dict": isinstance(self.body, dict)})


@pytest.fixture
def echo(make_caller):
    """Sends a POST to a view that takes any body; returns the answer."""
    token = make_caller().headers["Authorization"]

    def send(body=b"{}", method="post", content_type="application/json", **headers):
        request = getattr(RequestFactory(), method)(
            "/", body, content_type=content_type, headers={"Authorization": token} | headers
        )
        return Answer(Echo.as_view()(request))

    return send


class Answer:
    """A response that was rendered, and can be asked for its JSON."""

    def __init__(self, response):
        self.response = response.render() if hasattr(response, "render") else response
        self.status_code, self.content = self.response.status_code, self.response.content

    def __getitem__(self, name):
        return self.response[name]

    def json(self):
        return json.loads(self.content)


def test_body_is_taken(echo):
    assert echo(b'{"a": 1}').json() == {"is_dict": True}


def test_body_that_is_too_large_is_not_read(echo, settings):
    settings.JOBQUEUE = {"API": {"MAX_BODY_BYTES": 1_024}}
    assert problem(echo(b'"' + b"x" * 1_024), 413, "body-too-large")["limit"] == 1_024


def test_body_is_read_no_further_than_its_limit(settings):
    settings.JOBQUEUE = {"API": {"MAX_BODY_BYTES": 1_024}}
    stream = io.BytesIO(b"x" * 5_000)
    with pytest.raises(Problem) as caught:
        StrictJSONParser().parse(stream)
    assert caught.value.kind.code == "body-too-large"
    assert stream.tell() == 1_025


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "",
     "application/json; charset=latin-1", "application/xml"],
)  # fmt: skip
def test_other_types_are_refused(echo, content_type):
    problem(echo(b"{}", content_type=content_type), 415, "unsupported-media-type")


def test_json_may_say_its_charset(echo):
    assert echo(b"{}", content_type="application/json; charset=UTF-8").status_code == 200


@pytest.mark.parametrize("depth", [40, 10_000])
def test_deep_body_is_refused(echo, depth):
    problem(echo(b'{"a":' + b"[" * depth + b"]" * depth + b"}"), 400, "malformed-body")


def test_chunked_body_is_refused(echo):
    problem(echo(b"", **{"Transfer-Encoding": "chunked"}), 411, "length-required")


def test_body_is_refused_where_none_is_taken(make_caller):
    response = make_caller().client.generic(
        "GET", PREFIX + "/tasks/", b"{}", "application/json", headers=make_caller("lee").headers
    )
    problem(response, 400, "malformed-body")


def test_no_body_is_an_empty_object(echo):
    assert echo(b"", content_type="").json() == {"is_dict": True}


def test_unexpected_error_tells_nothing_and_is_in_the_log(echo, caplog):
    document = problem(echo(b'{"fail": 1}'), 500, "internal-error")
    assert "nobody may see" not in json.dumps(document)
    assert document["instance"] in caplog.text
    assert "KeyError: 'what nobody may see'" in caplog.text


def test_views_are_outside_the_transaction_of_the_request(settings):
    assert Echo.as_view()._non_atomic_requests == set(settings.DATABASES)


@pytest.mark.parametrize("value", ["Token a\x00b", "Token \xe9", "Token", "Token a b", "Basic !"])
def test_odd_credentials_are_refused(anybody: Api, db, value):
    response = anybody.get("/tasks/", Authorization=value)
    assert response.status_code == 401
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("query", ["a=%00", "a=%ed%a0%80", "%00=1", "a=1&a=2", "a", "=", "a[]=1"])
def test_odd_parameters_are_refused(make_caller, query):
    api = make_caller()
    response = api.client.get(f"{PREFIX}/tasks/?{query}", headers=api.headers)
    problem(response, 400, "invalid-parameters")


def test_more_parameters_than_django_takes_are_refused(make_caller):
    api = make_caller()
    response = api.client.get(f"{PREFIX}/tasks/?{'&'.join('a=1' for _ in range(2_000))}",
                              headers=api.headers)  # fmt: skip
    problem(response, 400, "malformed-request")


# --- sessions -------------------------------------------------------------------------------------


@pytest.fixture
def session(db):
    client = Client(enforce_csrf_checks=True)
    client.force_login(get_user_model().objects.create_user("kim"))
    return client


def test_session_may_read(session):
    assert session.get(PREFIX + "/tasks/").status_code == 200


def test_session_may_change_nothing_without_the_token_of_its_page(session):
    response = session.post(PREFIX + "/jobs/", {}, content_type="application/json")
    problem(response, 403, "csrf-failed")


def test_inactive_user_is_nobody(make_caller):
    api = make_caller()
    api.user.is_active = False
    api.user.save()
    problem(api.get("/tasks/"), 401, "authentication-failed")


# --- before any view ------------------------------------------------------------------------------

MIDDLEWARE = "jobqueue.api.middleware.problem_details"


@pytest.fixture
def guarded(settings):
    settings.MIDDLEWARE = [MIDDLEWARE, *settings.MIDDLEWARE]
    return Client(raise_request_exception=False)


def test_host_that_is_not_allowed_is_a_problem(guarded):
    problem(guarded.get(PREFIX + "/tasks/", headers={"Host": "evil.example"}), 400,
            "malformed-request")  # fmt: skip


def test_other_addresses_are_left_alone(guarded):
    response = guarded.get("/", headers={"Host": "evil.example"})
    assert response["Content-Type"].startswith("text/html")


def test_middleware_serves_asgi(settings, async_client):
    settings.MIDDLEWARE = [MIDDLEWARE, *settings.MIDDLEWARE]
    get = async_to_sync(async_client.get)
    problem(get(PREFIX + "/tasks/", headers={"Host": "evil.example"}), 400, "malformed-request")
