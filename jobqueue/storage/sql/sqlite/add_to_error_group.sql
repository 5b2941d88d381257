-- Adds to an error group, or makes it; the newest error names the job.
-- Caller: Storage.add_to_error_groups. Index: primary key.
INSERT INTO jobqueue_errorgroup (fingerprint, error_class, message, count, first_seen, last_seen,
                                 job_id, task, queue)
VALUES (%(fingerprint)s, %(error_class)s, %(message)s, %(count)s, %(first_seen)s, %(last_seen)s,
        %(job_id)s, %(task)s, %(queue)s)
ON CONFLICT (fingerprint) DO UPDATE
SET count = count + excluded.count, first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen), message = excluded.message,
    job_id = excluded.job_id, task = excluded.task, queue = excluded.queue
