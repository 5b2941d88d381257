-- Finishes a job and commits, in one message. Caller: postgres_commit.finish_and_commit, whose
-- session has prepared finish_one.sql under this name. The guard fails in the first statement,
-- and the server does not come to the second then. Literals, as the simple protocol has no values.
EXECUTE jobqueue_finish (%(id)s, %(fence)s, %(worker)s, %(result)s, %(started_ago)s);
COMMIT
