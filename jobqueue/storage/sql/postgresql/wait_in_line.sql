-- Waits for the row of a job that is kept locked, in line with those who lock it, and keeps it until
-- the transaction ends. Caller: Storage.wait_in_line, in the transaction that claims it then.
-- One process of all waits for a job: the others would only hold a session each. A process that
-- freezes once it has the row loses its session, and with it the row. Index: primary key.
SELECT j.id
FROM (SELECT set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, true)) AS limited
CROSS JOIN jobqueue_job AS j
WHERE j.id = %(id)s::uuid AND j.state IN ('ready', 'retrying', 'scheduled')
  AND pg_try_advisory_xact_lock(%(space)s, hashtext(%(id)s::text))
FOR NO KEY UPDATE OF j
