-- Inserts a worker's row. Caller: Storage.register_worker.
INSERT INTO jobqueue_worker (id, kind, name, host, pid, supervisor, backend, version, queues,
                             tasks, slots, direct, started_at, heartbeat_at, lease_until,
                             clock_ahead, draining, dead, dead_reason, blame)
VALUES (%(id)s, %(kind)s, %(name)s, %(host)s, %(pid)s, %(supervisor)s, %(backend)s, %(version)s,
        %(queues)s, %(tasks)s, %(slots)s, %(direct)s, %(now)s, %(now)s, %(lease_until)s,
        0.0, 0, 0, '', 'jobs')
