-- What grows with every commit on the server: equal marks mean that nothing was committed between.
-- Caller: Storage.change_mark (the live page's feed). No table is read.
SELECT pg_current_snapshot()::text
