"""The OpenAPI document: valid, complete, and what is committed is what the code says."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from openapi_spec_validator import validate

from jobqueue.api import document
from jobqueue.api.problem_types import PROBLEMS
from tests.api.conftest import PREFIX, Api, problem

MADE = document.made()
COMMITTED = document.committed()


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in COMMITTED["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


OPERATIONS = [pytest.param(operation, id=name) for name, operation in operations()]


def test_committed_document_is_what_the_code_says():
    assert document.as_text(MADE) == document.FILE.read_text(encoding="utf-8"), (
        "run python -m docs.generate"
    )


def test_document_is_valid_openapi():
    assert COMMITTED["openapi"] == "3.1.0"
    validate(COMMITTED)


def test_generator_had_to_guess_nothing():
    document.made()
    assert not GENERATOR_STATS._warn_cache
    assert not GENERATOR_STATS._error_cache


def test_operations_have_names_of_their_own():
    names = [operation["operationId"] for _, operation in operations()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_says_what_it_does_and_who_may(operation):
    assert operation["summary"]
    assert "Needs" in operation["description"]
    assert operation["security"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_has_every_error_with_an_example(operation):
    errors = {s: r for s, r in operation["responses"].items() if s >= "400"}
    assert errors.keys() >= {"400", "401", "406", "429", "500", "503"}
    for response in errors.values():
        content = response["content"]["application/problem+json"]
        assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
        assert content["examples"]


def contents(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each JSON that the operation takes, or answers with success."""
    yield from operation.get("requestBody", {}).get("content", {}).items()
    for status, response in operation["responses"].items():
        if status < "300":
            yield from response.get("content", {}).items()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_examples_are_there_and_fit_their_schema(operation):
    assert any(status < "300" for status in operation["responses"])
    for media_type, content in contents(operation):
        assert media_type == "application/json"
        assert content.get("examples"), f"{operation['operationId']}: no example"
        for example in content["examples"].values():
            schema = {**content["schema"], "components": COMMITTED["components"]}
            jsonschema.Draft202012Validator(schema).validate(example["value"])


def test_problems_are_all_described():
    schema = COMMITTED["components"]["schemas"]["Problem"]
    assert schema["properties"]["code"]["enum"] == sorted(PROBLEMS)
    for code, example in COMMITTED["components"]["examples"].items():
        jsonschema.Draft202012Validator(schema).validate(example["value"])
        assert example["value"]["code"] == code


def test_document_is_served_with_the_address_of_the_project(make_caller):
    served = make_caller().get("/openapi.json").json()
    assert served["servers"] == [{"url": PREFIX}]
    assert served["paths"] == json.loads(json.dumps(COMMITTED["paths"]))


def test_served_document_names_the_credentials_that_the_project_takes(make_caller, settings):
    classes = ["BasicAuthentication", "TokenAuthentication"]
    settings.JOBQUEUE = {
        "API": {"AUTHENTICATION": [f"rest_framework.authentication.{name}" for name in classes]}
    }
    served = make_caller().get("/openapi.json").json()
    validate(served)
    schemes = served["components"]["securitySchemes"]
    assert schemes["BasicAuthentication"] == {"type": "http", "scheme": "basic"}
    wanted = [{"BasicAuthentication": []}, {"token": []}]
    assert served["paths"]["/tasks/"]["get"]["security"] == wanted
    assert {} in served["paths"]["/health/live/"]["get"]["security"]
    assert "session" in COMMITTED["components"]["securitySchemes"]


def test_page_loads_nothing_from_elsewhere(make_caller, settings):
    response = make_caller().get("/docs/", Accept="text/html")
    assert response.status_code == 200
    page = response.content.decode()
    assert "//" not in page
    assert "<style" not in page
    assert page.count("<script") == page.count("<script src=") == 2
    policy = response["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_static_files_of_another_host_are_allowed_by_name(make_caller, settings):
    settings.STATIC_URL = "https://static.example.com/s/"
    policy = make_caller().get("/docs/", Accept="*/*")["Content-Security-Policy"]
    assert "script-src 'self' https://static.example.com;" in policy


def test_page_says_what_it_lacks(make_caller, settings):
    settings.INSTALLED_APPS = [a for a in settings.INSTALLED_APPS if "sidecar" not in a]
    found = problem(make_caller().get("/docs/", Accept="text/html"), 404, "not-found")
    assert "drf_spectacular_sidecar" in found["detail"]


def test_page_is_not_open(anybody: Api, db):
    problem(anybody.get("/docs/", Accept="text/html"), 401, "not-authenticated")
