"""Which problem an exception is: one of the engine, of REST framework, of Django, or unexpected."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from django.core import signals
from django.core.exceptions import (
    BadRequest,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, UnreadablePostError
from django.http.request import RawPostDataException
from rest_framework import exceptions as drf

from jobqueue import exceptions as ours
from jobqueue.api.problem_types import BY_STATUS, PROBLEMS
from jobqueue.api.problems import FieldError, Problem, pointer
from jobqueue.surfaces import api_options

logger = logging.getLogger("django.request")

RETRY_SECONDS = 1
"""When to try again what was locked or could not be reached: such holds are short."""


def problem_of(error: Exception, request: HttpRequest) -> Problem:
    """Return the problem that `error`, raised while `request` was answered, is."""
    if isinstance(error, Problem):
        return error
    for kind, translate in _TRANSLATIONS:
        if isinstance(error, kind):
            return translate(error)
    return _unexpected(error, request)


# --- ours -----------------------------------------------------------------------------------------


def _wrong_state(error: ours.WrongState) -> Problem:
    return Problem(
        error.code,
        str(error),
        current_state=str(error.current_state),
        allowed_actions=list(error.allowed_actions),
    )


def _try_again(error: ours.JobQueueError) -> Problem:
    return Problem(error.code, str(error), headers={"Retry-After": str(RETRY_SECONDS)})


def _flaws(error: ours.InvalidSubmission | ours.UniqueKeyTaken) -> Problem:
    """Return the problem of `error`: of the kind of its flaws, where they are all of one."""
    kinds = {flaw.code for flaw in error.errors} & set(PROBLEMS) - {ours.InvalidArgument.code}
    is_one = len(kinds) == 1 and all(flaw.code in kinds for flaw in error.errors)
    return Problem(
        kinds.pop() if is_one else error.code,
        errors=[FieldError(flaw.detail, pointer=flaw.pointer) for flaw in error.errors],
    )


def _invalid_key(error: ours.InvalidIdempotencyKey) -> Problem:
    errors = [FieldError(str(error), header="Idempotency-Key")]
    return Problem(error.code, str(error), errors=errors)


def _invalid_filter(error: ours.InvalidFilter) -> Problem:
    return Problem(
        error.code,
        str(error),
        errors=[FieldError(error.problem, parameter="q")],
        position=error.position,
    )


def _invalid_schedule(error: ours.InvalidSchedule) -> Problem:
    errors = [FieldError(text, pointer=pointer(field)) for field, text in error.errors.items()]
    return Problem(error.code, str(error), errors=errors)


def _ours(error: ours.JobQueueError) -> Problem:
    """Return the problem of the exception's code, or of that of the nearest class above it."""
    for cls in type(error).__mro__:
        code = getattr(cls, "code", "")
        if code in PROBLEMS:
            text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
            return Problem(code, text)
    raise LookupError  # an exception that no client can cause


# --- REST framework's and Django's ----------------------------------------------------------------


def _not_authenticated(error: drf.APIException) -> Problem:
    failed = isinstance(error, drf.AuthenticationFailed)
    code = "authentication-failed" if failed else "not-authenticated"
    header = getattr(error, "auth_header", None) or "Session"
    return Problem(code, headers={"WWW-Authenticate": header})


def _denied(error: Exception) -> Problem:
    detail = str(error)
    if detail.startswith("CSRF"):
        return Problem("csrf-failed", f"{detail} {PROBLEMS['csrf-failed'].meaning}")
    return Problem("permission-denied")


def _by_status(error: drf.APIException) -> Problem:
    code = BY_STATUS.get(error.status_code, "malformed-request")
    return Problem(code, str(error.detail) if isinstance(error.detail, str) else "")


def _too_big(error: Exception) -> Problem:
    limit = api_options().max_body_bytes
    return Problem("body-too-large", limit=limit)


def _suspicious(error: Exception) -> Problem:
    return Problem("malformed-request")


def _not_found(error: Exception) -> Problem:
    return Problem("not-found")


_TRANSLATIONS: tuple[tuple[type[Exception], Callable[[Any], Problem]], ...] = (
    (ours.WrongState, _wrong_state),
    (ours.RowLocked, _try_again),
    (ours.KeyBusy, _try_again),
    (ours.IdempotencyKeyInProgress, _try_again),
    (ours.DatabaseUnavailable, _try_again),
    (ours.InvalidSubmission, _flaws),
    (ours.UniqueKeyTaken, _flaws),
    (ours.InvalidIdempotencyKey, _invalid_key),
    (ours.InvalidFilter, _invalid_filter),
    (ours.InvalidSchedule, _invalid_schedule),
    (drf.NotAuthenticated, _not_authenticated),
    (drf.AuthenticationFailed, _not_authenticated),
    (drf.PermissionDenied, _denied),
    (drf.APIException, _by_status),
    (PermissionDenied, _denied),
    (Http404, _not_found),
    (RequestDataTooBig, _too_big),
    (SuspiciousOperation, _suspicious),
    (BadRequest, _suspicious),
    (UnreadablePostError, _suspicious),
    (RawPostDataException, _suspicious),
)


# --- all others -----------------------------------------------------------------------------------


def _unexpected(error: Exception, request: HttpRequest) -> Problem:
    """Return a 500 that tells nothing, after the log and whoever watches for errors were told."""
    if isinstance(error, ours.JobQueueError):
        try:
            return _ours(error)
        except LookupError:
            pass
    instance = uuid4().urn
    signals.got_request_exception.send(sender=None, request=request)
    if isinstance(error, OperationalError | InterfaceError):
        problem = Problem("unavailable", headers={"Retry-After": str(RETRY_SECONDS)})
    else:
        problem = Problem("internal-error")
    problem.members["instance"] = instance
    logger.error(
        "%s: %s (%s)",
        problem.kind.title,
        request.path,
        instance,
        exc_info=sys.exc_info(),
        extra={"status_code": problem.status, "request": request},
    )
    return problem
