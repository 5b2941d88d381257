-- The keys of all life locks that are held in this database. Caller: Storage.life_locks.
-- Read, never tried: trying would take the lock of a worker that is about to hold it again.
SELECT (l.classid::bigint << 32) | l.objid::bigint
FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
