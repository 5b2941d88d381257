-- Jobs per live state and dead; finished ones are never counted (there may be millions).
-- Caller: Storage.state_counts. Indexes: one partial index a state.
SELECT 'ready', count(*) FROM jobqueue_job WHERE state = 'ready'
UNION ALL SELECT 'running', count(*) FROM jobqueue_job WHERE state = 'running'
UNION ALL SELECT 'blocked', count(*) FROM jobqueue_job WHERE state = 'blocked'
UNION ALL SELECT 'dead', count(*) FROM jobqueue_job WHERE state = 'dead'
UNION ALL SELECT 'retrying', count(*) FROM jobqueue_job
          WHERE state IN ('retrying', 'scheduled') AND state = 'retrying'
UNION ALL SELECT 'scheduled', count(*) FROM jobqueue_job
          WHERE state IN ('retrying', 'scheduled') AND state = 'scheduled'
