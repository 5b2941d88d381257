"""The schema. One model a file; invariants are constraints, so that no code path can break them.

No row of history has a database-level foreign key into the hot job table: it would lock the
job's row for every attempt written.
"""

import jobqueue.models.installed  # noqa: F401 - first: it says what the others could not
from jobqueue.models.action import Action
from jobqueue.models.attempt import Attempt
from jobqueue.models.bulk_operation import BulkOperation, BulkState
from jobqueue.models.cancel_request import CancelRequest
from jobqueue.models.dead_letter import DeadLetter
from jobqueue.models.error_group import ErrorGroup
from jobqueue.models.idempotency_key import IdempotencyKey
from jobqueue.models.job import Job
from jobqueue.models.limit import Limit, LimitUse
from jobqueue.models.log_line import LogLine
from jobqueue.models.progress import Progress
from jobqueue.models.queue import Queue
from jobqueue.models.rollup import Rolling, Rollup
from jobqueue.models.schedule import Schedule
from jobqueue.models.step import Step
from jobqueue.models.tag import JobTag
from jobqueue.models.tick import Tick
from jobqueue.models.worker import Worker

__all__ = [
    "Action",
    "Attempt",
    "BulkOperation",
    "BulkState",
    "CancelRequest",
    "DeadLetter",
    "ErrorGroup",
    "IdempotencyKey",
    "Job",
    "JobTag",
    "Limit",
    "LimitUse",
    "LogLine",
    "Progress",
    "Queue",
    "Rolling",
    "Rollup",
    "Schedule",
    "Step",
    "Tick",
    "Worker",
]
