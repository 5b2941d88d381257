-- The process of a worker. Caller: SQLiteWorkers._is_alive, for a database in memory.
SELECT pid FROM jobqueue_worker WHERE id = %(id)s
