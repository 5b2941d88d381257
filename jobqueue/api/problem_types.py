"""Every problem that the API answers: its code, its status, its title, and what to do about it.

The codes are the API's contract: a client may decide by them. Those of `jobqueue.exceptions` are
here under the exception's own code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One kind of problem (RFC 9457). meaning: when it comes, and the way out, for the docs."""

    code: str
    status: int
    title: str
    meaning: str


def _by_code(types: Iterable[ProblemType]) -> dict[str, ProblemType]:
    return {one.code: one for one in types}


PROBLEMS = _by_code(
    (
        # 400: what was sent
        ProblemType(
            "malformed-request", 400, "Malformed request",
            "The request could not be read as HTTP of this API. Look at its headers.",
        ),
        ProblemType(
            "malformed-body", 400, "Malformed body",
            "The body is not one JSON object in UTF-8, repeats a key, nests too deep, or holds a "
            "number or character that JSON or a database cannot. `errors` says where.",
        ),
        ProblemType(
            "invalid-fields", 400, "Invalid fields",
            "A field of the body is unknown, missing or out of range; `errors` points at each.",
        ),
        ProblemType(
            "invalid-parameters", 400, "Invalid parameters",
            "A query parameter is unknown, repeated or out of range; `errors` names each.",
        ),
        ProblemType(
            "invalid-argument", 400, "Invalid argument",
            "A value is out of its range; `detail` says which.",
        ),
        ProblemType(
            "invalid-filter", 400, "Invalid filter",
            "A filter cannot be read; `position` is the character at which reading stopped.",
        ),
        ProblemType(
            "invalid-header", 400, "Invalid header",
            "A header that this address understands has a value that it cannot have.",
        ),
        ProblemType("invalid-run-after", 400, "Invalid run_after", "It is no time, or too far."),
        ProblemType("invalid-expires", 400, "Invalid expires", "It is no time after `run_after`."),
        ProblemType("invalid-unique-key", 400, "Invalid unique key", "Keys are short plain text."),
        ProblemType(
            "invalid-schedule", 400, "Invalid schedule", "`errors` says what is wrong, by field."
        ),
        ProblemType(
            "unsupported-type", 400, "Unsupported type", "A value has a type that jobs cannot take."
        ),
        ProblemType(
            "payload-too-large", 400, "Payload too large",
            "The arguments are larger than a job may have. Store the data, and pass its key.",
        ),
        # 401, 403
        ProblemType(
            "not-authenticated", 401, "Not authenticated",
            "Send credentials: a token in the Authorization header, or a session's cookie.",
        ),
        ProblemType(
            "authentication-failed", 401, "Authentication failed",
            "The credentials were refused: unknown, expired, or of an inactive user.",
        ),
        ProblemType(
            "permission-denied", 403, "Permission denied",
            "The credentials are good, and may not do this. `permission` names what is missing.",
        ),
        ProblemType(
            "csrf-failed", 403, "CSRF check failed",
            "With a session, what changes something needs the X-CSRFToken header.",
        ),
        # 404 … 415
        ProblemType(
            "not-found", 404, "Not found",
            "There is nothing here, or nothing that you may know of.",
        ),
        ProblemType("job-not-found", 404, "No such job", "There is no such job among those that "
                    "you may see; jobs are deleted some days after their end."),
        ProblemType("bulk-operation-not-found", 404, "No such bulk operation", "It is not there."),
        ProblemType("schedule-not-found", 404, "No such schedule", "It is not there."),
        ProblemType(
            "method-not-allowed", 405, "Method not allowed", "Allow names the methods that are."
        ),
        ProblemType("not-acceptable", 406, "Not acceptable", "Answers are application/json only."),
        ProblemType(
            "length-required", 411, "Length required",
            "Send the body's length in Content-Length; chunked bodies are not taken.",
        ),
        ProblemType(
            "precondition-failed", 412, "Precondition failed",
            "The resource has changed since its ETag was read. Read it again.",
        ),
        ProblemType(
            "body-too-large", 413, "Body too large",
            "Send less at once; `limit` is how many bytes are taken.",
        ),
        ProblemType(
            "unsupported-media-type", 415, "Unsupported media type",
            "Send the body as application/json.",
        ),
        # 409
        ProblemType(
            "wrong-state", 409, "Wrong state",
            "The job's `current_state` does not allow this; `allowed_actions` are what it does.",
        ),
        ProblemType(
            "row-locked", 409, "Locked",
            "Somebody's transaction holds the row. Send the same again after Retry-After seconds.",
        ),
        ProblemType(
            "key-busy", 409, "Unique key busy",
            "Others are enqueueing this unique key. Send the same again after Retry-After seconds.",
        ),
        ProblemType(
            "idempotency-key-reused", 409, "Idempotency key reused",
            "The key came with another body before. Use a new key for a new request.",
        ),
        ProblemType(
            "idempotency-key-in-progress", 409, "Idempotency key in progress",
            "The first request with this key has not ended. Send the same after Retry-After "
            "seconds.",
        ),
        ProblemType(
            "idempotency-key-required", 400, "Idempotency key required",
            "Send an Idempotency-Key header: a new one, such as a UUID, for each new request, and "
            "the same when you repeat one.",
        ),
        ProblemType(
            "invalid-idempotency-key", 400, "Invalid idempotency key",
            "A key is 1 to 255 printable ASCII characters, such as a UUID. None is ever cut.",
        ),
        ProblemType(
            "unique-key-taken", 409, "Unique key taken",
            "A job that you may not see holds the unique key. Nothing was enqueued; it may be "
            "free later.",
        ),
        ProblemType(
            "schedule-changed", 409, "Schedule changed", "Read it again, and repeat your change."
        ),
        ProblemType(
            "declared-in-code", 409, "Declared in code", "The project's code is where to change it."
        ),
        ProblemType(
            "task-not-exposed", 400, "Task not offered",
            "No task of this name is offered to HTTP clients. `/tasks/` lists those that are.",
        ),
        ProblemType("task-not-registered", 400, "Task not registered", "No task has this name."),
        # 429, 5xx
        ProblemType(
            "too-many-requests", 429, "Too many requests",
            "Wait for Retry-After seconds; the RateLimit headers say how many requests are left.",
        ),
        ProblemType(
            "internal-error", 500, "Internal error",
            "Our fault. `instance` is in the server's log. What was sent may be sent again, with "
            "the same Idempotency-Key where it enqueues.",
        ),
        ProblemType(
            "unavailable", 503, "Unavailable",
            "The database did not answer, so what was asked may or may not have been done. Send "
            "the same again after Retry-After seconds, with the same Idempotency-Key where it "
            "enqueues.",
        ),
    )
)  # fmt: skip

BY_STATUS = {
    400: "malformed-request",
    401: "not-authenticated",
    403: "permission-denied",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    413: "body-too-large",
    415: "unsupported-media-type",
    429: "too-many-requests",
    500: "internal-error",
    503: "unavailable",
}
"""What stands for an answer that somebody else made without a code."""
