-- Takes the write lock under the whole guard: the first statement of context.atomic().
-- Caller: Storage.hold. An UPDATE that changes nothing: a plain read would fence nothing.
UPDATE jobqueue_job SET version = version
WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s AND worker = %(worker)s
