-- Adds log lines, and drops the middle of runs that wrote more than are kept.
-- Caller: Storage.write_lines, perhaps again after a lost answer: lines have numbers.
-- The snapshot of DELETE is older than the INSERT: it sees the lines of earlier statements only.
-- Index: jobqueue_logline_of_run; the primary key of jobs (read, never locked).
WITH given AS MATERIALIZED (
    SELECT r.*
    FROM json_to_recordset(%(rows)s::json) AS r(
             job_id uuid, fence bigint, number integer, level smallint, logger text, message text,
             ago float8)
    WHERE EXISTS (SELECT FROM jobqueue_job AS j WHERE j.id = r.job_id)
), newest AS (
    SELECT job_id, fence, max(number) AS number FROM given GROUP BY job_id, fence
), dropped AS (
    DELETE FROM jobqueue_logline AS l
    USING newest AS n
    WHERE l.job_id = n.job_id AND l.fence = n.fence
      AND l.number > %(head)s AND l.number <= n.number - %(tail)s
)
INSERT INTO jobqueue_logline (job_id, fence, number, logged_at, level, logger, message)
SELECT job_id, fence, number, statement_timestamp() - make_interval(secs => ago), level, logger,
       message
FROM given
ON CONFLICT (job_id, fence, number) DO NOTHING
