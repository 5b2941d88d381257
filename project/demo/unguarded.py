"""The storage of GUARD=off: what goes wrong without the guard.

Its finish matches the job's id alone, as several queues do, and leaves out the attempt row
where one is already there. It must make the demo's audit fail: that is how we know that the
audit can. Never use it for anything else.
"""

from jobqueue.storage.postgres import PostgresStorage
from jobqueue.storage.records import Claim

# The counters keep to the table's check constraints, which would refuse the zombie otherwise.
FINISH = """
WITH finished AS (
    UPDATE jobqueue_job AS j
    SET state = 'succeeded', worker = NULL, claimed_at = NULL, deadline = NULL,
        finished_at = statement_timestamp(), result = %(result)s::json,
        attempts = least(j.attempts + 1, j.fence), version = j.version + 1
    WHERE j.id = %(id)s::uuid
    RETURNING j.id, j.attempts, j.task, j.queue
)
INSERT INTO jobqueue_attempt (job_id, number, fence, worker, task, queue, outcome, charged,
                              started_at, finished_at, error_class, error_message,
                              error_fingerprint, traceback)
SELECT id, attempts, %(fence)s::bigint, %(worker)s::uuid, task, queue, 'succeeded', false,
       statement_timestamp() - make_interval(secs => %(started_ago)s::float8),
       statement_timestamp(), '', '', '', ''
FROM finished
ON CONFLICT DO NOTHING
"""


class UnguardedStorage(PostgresStorage):
    """PostgreSQL without the guard in the finish of a job with effects."""

    def finish_one(self, claim: Claim, result: str, started_ago: float) -> bool:
        """Finish the job whoever holds it now."""
        with self.connection.cursor() as cursor:
            cursor.execute(
                FINISH,
                {
                    "id": claim.id,
                    "fence": claim.fence,
                    "worker": claim.worker,
                    "result": result,
                    "started_ago": started_ago,
                },
            )
        return False
