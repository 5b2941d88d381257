-- Inserts a worker's row with a fresh lease. Caller: Storage.register_worker.
INSERT INTO jobqueue_worker (id, kind, name, host, pid, supervisor, backend, version, queues,
                             tasks, slots, direct, started_at, heartbeat_at, lease_until,
                             clock_ahead, draining, dead, dead_reason, blame)
VALUES (%(id)s::uuid, %(kind)s, %(name)s, %(host)s, %(pid)s, %(supervisor)s::uuid, %(backend)s,
        %(version)s, %(queues)s::json, %(tasks)s::json, %(slots)s, %(direct)s,
        statement_timestamp(), statement_timestamp(),
        statement_timestamp() + make_interval(secs => %(lease)s::float8),
        %(clock)s::float8 - extract(epoch FROM statement_timestamp())::float8, false, false, '',
        'jobs')
