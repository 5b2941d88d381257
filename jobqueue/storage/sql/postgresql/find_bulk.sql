-- Whether a bulk operation has a step to be carried out. Caller: Storage.bulk_waits, at every turn
-- of a scheduler. Index: jobqueue_bulk_running, which is empty nearly always.
SELECT EXISTS (SELECT FROM jobqueue_bulkoperation
               WHERE state = 'running'
                 AND (wait_until IS NULL
                      OR wait_until <= coalesce(%(now)s::timestamptz, statement_timestamp())))
