-- The recorded result of a step. Caller: Storage.find_step. Index: jobqueue_step_job_name.
SELECT result FROM jobqueue_step WHERE job_id = %(id)s AND name = %(name)s
