-- The numbers of a limit: of the very key, else of its name. Caller: Storage.read_rooms.
-- Index: primary key.
SELECT running, rate, per FROM jobqueue_limit
WHERE key IN (%(key)s, substr(%(key)s, 1, instr(%(key)s || ':', ':') - 1))
ORDER BY key = %(key)s DESC LIMIT 1
