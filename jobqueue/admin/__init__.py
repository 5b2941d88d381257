"""The Django admin: what is stuck, why, since when, and what one can safely press.

Registers itself where ``django.contrib.admin`` is installed. `JobsOfObject` shows the jobs of any
model's object on its page; see docs/howto/admin.md.
"""

from django.contrib import admin

from jobqueue.admin.bulk_operations import BulkOperationAdmin
from jobqueue.admin.dead_letters import DeadLetterAdmin
from jobqueue.admin.error_groups import ErrorGroupAdmin
from jobqueue.admin.jobs import JobAdmin
from jobqueue.admin.limits import LimitAdmin
from jobqueue.admin.queues import QueueAdmin
from jobqueue.admin.records import ActionAdmin, AttemptAdmin, TagAdmin
from jobqueue.admin.schedules import ScheduleAdmin
from jobqueue.admin.tagged import JobsOfObject
from jobqueue.admin.workers import WorkerAdmin
from jobqueue.models import (
    Action,
    Attempt,
    BulkOperation,
    DeadLetter,
    ErrorGroup,
    Job,
    JobTag,
    Limit,
    Queue,
    Schedule,
    Worker,
)

__all__ = ["JobsOfObject"]

admin.site.register(Job, JobAdmin)
admin.site.register(DeadLetter, DeadLetterAdmin)
admin.site.register(ErrorGroup, ErrorGroupAdmin)
admin.site.register(Queue, QueueAdmin)
admin.site.register(Worker, WorkerAdmin)
admin.site.register(Schedule, ScheduleAdmin)
admin.site.register(Limit, LimitAdmin)
admin.site.register(BulkOperation, BulkOperationAdmin)
admin.site.register(Action, ActionAdmin)
admin.site.register(Attempt, AttemptAdmin)
admin.site.register(JobTag, TagAdmin)
