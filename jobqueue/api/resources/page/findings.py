"""``/page/findings/``: what is wrong now, the worst first, each with the way out.

The look is at most a second old, see `jobqueue.api.fresh`.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from jobqueue import control
from jobqueue.api import fresh
from jobqueue.api.access import needs
from jobqueue.api.answers import conditional
from jobqueue.api.caller import Caller
from jobqueue.api.documents import CountDocument, Document, count, nullable_number
from jobqueue.api.values import moment, text
from jobqueue.api.views import ApiView
from jobqueue.disclosure import shown_sentence
from jobqueue.permissions import VIEW


class FindingDocument(Document):
    """One thing that is wrong."""

    code = serializers.CharField(help_text="Stable, for programs.")
    severity = serializers.ChoiceField(choices=["error", "warning", "info"])
    sentence = serializers.CharField()
    way_out = serializers.CharField(allow_blank=True)
    subject = serializers.CharField(
        allow_blank=True,
        help_text="The queue, task, worker, session, bulk operation or error that it is about.",
    )
    count = CountDocument(allow_null=True)
    seconds = nullable_number()


class FindingList(Document):
    """All that is wrong."""

    as_of = serializers.DateTimeField()
    results = FindingDocument(many=True)


class FindingsView(ApiView):
    """What is wrong now."""

    @extend_schema(
        responses={200: FindingList, 304: None},
        examples=[
            OpenApiExample(
                "a queue is paused",
                value={
                    "as_of": "2026-07-14T11:02:00Z",
                    "results": [
                        {
                            "code": "paused",
                            "severity": "warning",
                            "sentence": "Queue mail is paused by kim; 312 jobs wait.",
                            "way_out": "Resume it: manage.py jobs resume mail.",
                            "subject": "mail",
                            "count": {"value": 312, "relation": "eq"},
                            "seconds": None,
                        }
                    ],
                },
            )
        ],
    )
    @needs(VIEW)
    def get(self, request: Request) -> HttpResponse:
        """List what is wrong now, the worst first: as of a second ago at most."""
        status = fresh.status.of(self.backend)
        document = {
            "as_of": moment(status.as_of),
            "results": [_finding(one, self.caller) for one in control.findings(status)],
        }
        return conditional(request, document)


def _finding(one: control.Finding, caller: Caller) -> dict[str, Any]:
    return {
        "code": one.code,
        "severity": one.severity,
        "sentence": text(shown_sentence(one, may_see_payload=caller.sees_payload)),
        "way_out": text(one.way_out),
        "subject": text(one.subject),
        "count": None if one.count is None else count(one.count),
        "seconds": one.seconds,
    }
