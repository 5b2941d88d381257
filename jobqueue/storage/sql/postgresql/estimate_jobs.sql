-- How many jobs the planner expects in a state: it knows from the last ANALYZE, and reads nothing.
-- Caller: Storage.estimated_count.
EXPLAIN (FORMAT JSON) SELECT FROM jobqueue_job WHERE state = %(state)s
