"""The parts of ``manage.py jobs``: one small module a subcommand, in the order of the help text."""

from jobqueue.management.jobs_commands.audit import Audit
from jobqueue.management.jobs_commands.base import Shell, Subcommand
from jobqueue.management.jobs_commands.bulk import Bulk
from jobqueue.management.jobs_commands.cancel import Cancel
from jobqueue.management.jobs_commands.discard import Discard
from jobqueue.management.jobs_commands.drain import Drain
from jobqueue.management.jobs_commands.enqueue import Enqueue, RunAgain
from jobqueue.management.jobs_commands.limits import Limits
from jobqueue.management.jobs_commands.list_jobs import List
from jobqueue.management.jobs_commands.pause import Pause, Resume
from jobqueue.management.jobs_commands.prune import Prune
from jobqueue.management.jobs_commands.requeue import Requeue
from jobqueue.management.jobs_commands.schedules import Schedules
from jobqueue.management.jobs_commands.show import Show
from jobqueue.management.jobs_commands.status import Status
from jobqueue.management.jobs_commands.waiting import Move, Prioritize, Reschedule, RunNow
from jobqueue.management.jobs_commands.work import Work

SUBCOMMANDS: tuple[Subcommand, ...] = (
    Status(),
    List(),
    Show(),
    Enqueue(),
    Requeue(),
    RunAgain(),
    Cancel(),
    Discard(),
    Reschedule(),
    RunNow(),
    Prioritize(),
    Move(),
    Bulk(),
    Pause(),
    Resume(),
    Limits(),
    Drain(),
    Schedules(),
    Prune(),
    Audit(),
    Work(),
)

__all__ = ["SUBCOMMANDS", "Shell", "Subcommand"]
