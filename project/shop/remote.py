"""The shop's HTTP client for the outside world: JSON, a time-out, and an idempotency key."""

import json
from http.client import HTTPException
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from django.conf import settings

_opener = build_opener(ProxyHandler({}))  # the gateway is a neighbour: never through a proxy


class RemoteError(Exception):
    """The remote service did not answer well; whether it did the work is not known."""


def post(path: str, *, key: str, body: dict[str, Any]) -> dict[str, Any]:
    """Post `body` to the gateway and return its answer.

    key: the same for every repetition of one request; the gateway then does the work once.
    Raise RemoteError if no good answer came within GATEWAY_TIMEOUT_SECONDS.
    """
    request = Request(
        settings.GATEWAY_URL + path,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": key},
    )
    try:
        with _opener.open(request, timeout=settings.GATEWAY_TIMEOUT_SECONDS) as response:
            answer: dict[str, Any] = json.load(response)
            return answer
    except (OSError, HTTPException, ValueError) as error:  # URLError and time-outs are OSErrors
        raise RemoteError(f"{path}: {error}") from error
