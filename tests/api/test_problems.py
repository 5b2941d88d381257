"""Every error under the prefix is a problem document, whoever refuses."""

import pytest
from django.db import OperationalError

from jobqueue import exceptions
from jobqueue.api.errors import problem_of
from jobqueue.api.problem_types import BY_STATUS, PROBLEMS
from tests.api.conftest import Api, problem


def test_unknown_address_is_a_problem(anybody: Api):
    assert "slash" in problem(anybody.get("/tasks"), 404, "not-found")["detail"]
    problem(anybody.post("/nothing/here/", {}), 404, "not-found")


def test_wrong_method_is_a_problem(anybody: Api):
    response = anybody.delete("/tasks/")
    problem(response, 405, "method-not-allowed")
    assert response["Allow"] == "GET, HEAD"


def test_unknown_parameter_is_a_problem(make_caller):
    document = problem(make_caller().get("/tasks/", {"page": "1"}), 400, "invalid-parameters")
    assert document["errors"] == [{"parameter": "page", "detail": "is unknown; known are none"}]


def test_other_types_are_not_acceptable(make_caller):
    problem(make_caller().get("/tasks/", Accept="text/html"), 406, "not-acceptable")


@pytest.mark.parametrize("accept", ["*/*", "application/*", "text/html, application/json;q=0.1"])
def test_json_is_acceptable_by_every_name(make_caller, accept):
    assert make_caller().get("/tasks/", Accept=accept).status_code == 200


def test_wrong_token_is_refused_and_told_how(anybody: Api, db):
    response = anybody.get("/tasks/", Authorization="Token wrong")
    problem(response, 401, "authentication-failed")
    assert response["WWW-Authenticate"] == "Token"


FLAWS = (exceptions.Flaw("/task", "is missing"), exceptions.Flaw("/args", "are too many"))
ERRORS = {exceptions.InvalidSubmission: FLAWS, exceptions.UniqueKeyTaken: FLAWS}


@pytest.mark.parametrize(
    "cls",
    [
        cls
        for cls in vars(exceptions).values()
        if isinstance(cls, type) and issubclass(cls, exceptions.JobQueueError)
    ],
)
def test_every_exception_that_a_client_can_cause_has_a_problem(cls, rf):
    error = cls.__new__(cls)
    Exception.__init__(error, "because")
    for name, value in {
        "current_state": "running", "allowed_actions": ("cancel",), "problem": "odd",
        "position": 0, "errors": ERRORS.get(cls, {"task": "is missing"}),
    }.items():  # fmt: skip
        setattr(error, name, value)
    found = problem_of(error, rf.get("/"))
    internal = {
        "error", "invalid-options", "lease-lost", "transaction-left-open", "step-error",
        "result-not-serializable", "mail-not-sent", "worker-lost", "worker-stopped",
        "transaction-open",
    }  # fmt: skip
    assert (found.kind.code == cls.code) != (cls.code in internal)
    assert (found.status == 500) == (cls.code in internal)


def test_lost_database_is_unavailable_and_says_nothing_else(rf):
    found = problem_of(OperationalError("server closed: host=10.0.0.1"), rf.get("/"))
    assert found.status == 503
    assert "10.0.0.1" not in str(found.as_dict())
    assert found.headers["Retry-After"]


def test_each_status_has_its_problem():
    assert all(PROBLEMS[code].status == status for status, code in BY_STATUS.items())
