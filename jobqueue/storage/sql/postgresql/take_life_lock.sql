-- Takes the session lock that proves a worker alive. Caller: Storage.hold_life_lock.
SELECT pg_advisory_lock((%(key)s)::bigint)
