"""A few requests of each operation, made from the document: the same ones each time.

`make fuzz-api` sends thousands, of other callers too, to a real site.
"""

import os
from contextlib import suppress

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from jobqueue.api import document
from tests.api.conftest import PREFIX
from tests.storage.making import register

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "3"))
CONFIG = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
SCHEMA = schemathesis.openapi.from_dict(document.committed(), config=CONFIG)
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]
APP = get_wsgi_application()


def fuzz(operation, mode, headers) -> None:
    @settings(
        max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case):
        response = case.call(app=APP, base_url=f"http://testserver{PREFIX}", headers=headers)
        case.validate_response(response, checks=CHECKS)

    with suppress(Unsatisfiable):  # nothing can be wrong about what takes nothing
        send()


@pytest.mark.postgres_only("what the document says is the same on every database")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_nothing_is_answered_that_the_document_does_not_have(superuser, storage, mode):
    register(storage)  # so that it is ready
    for operation in OPERATIONS:
        fuzz(operation, mode, superuser.headers)
