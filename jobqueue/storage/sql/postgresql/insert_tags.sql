-- Inserts the tags of new jobs, in the same transaction. Caller: Storage.insert_jobs.
INSERT INTO jobqueue_jobtag (job_id, tag)
SELECT job_id, tag FROM unnest(%(ids)s::uuid[], %(tags)s::text[]) AS t(job_id, tag)
ON CONFLICT (job_id, tag) DO NOTHING
