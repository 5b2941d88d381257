-- Inserts one tag of a new job, in the same transaction. Caller: Storage.insert_jobs.
INSERT INTO jobqueue_jobtag (job_id, tag) VALUES (%(job)s, %(tag)s)
ON CONFLICT (job_id, tag) DO NOTHING
