"""The ceiling: the protocol's statements alone, through psycopg, on a schema with nothing else.

Claim, guarded finish and attempt row, as jobqueue does them, but with integer keys, four columns
that matter, no JSON decoded and no task called. What jobqueue reaches of this is the price of
everything else.
"""

from collections.abc import Callable

import psycopg

SCHEMA = """
DROP TABLE IF EXISTS raw_job, raw_attempt, raw_row;
CREATE TABLE raw_job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, queue text NOT NULL DEFAULT 'default',
    task text NOT NULL DEFAULT 'task', args jsonb NOT NULL DEFAULT '[]',
    state smallint NOT NULL DEFAULT 1, rank bigint NOT NULL, fence bigint NOT NULL DEFAULT 0,
    worker bigint, result jsonb, finished_at timestamptz);
CREATE INDEX ON raw_job (queue, rank, id) WHERE state = 1;
CREATE INDEX ON raw_job (worker) WHERE state = 2;
CREATE TABLE raw_attempt (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job_id bigint NOT NULL,
    fence bigint NOT NULL, outcome smallint NOT NULL, UNIQUE (job_id, fence));
CREATE TABLE raw_row (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number bigint NOT NULL, who text NOT NULL);
"""
FILL = "INSERT INTO raw_job (rank) SELECT n FROM generate_series(1, %s) AS n"
CLAIM = """
UPDATE raw_job SET state = 2, fence = fence + 1, worker = %s
WHERE id = ANY(ARRAY(SELECT id FROM raw_job WHERE state = 1 AND queue = 'default'
                     ORDER BY rank, id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED))
RETURNING id, fence, args
"""
FINISH_MANY = """
WITH guarded AS (
    UPDATE raw_job SET state = 3, worker = NULL, finished_at = statement_timestamp()
    WHERE id = ANY(%s::bigint[]) AND state = 2 AND worker = %s
      AND (id, fence) IN (SELECT * FROM unnest(%s::bigint[], %s::bigint[]))
    RETURNING id, fence
)
INSERT INTO raw_attempt (job_id, fence, outcome) SELECT id, fence, 1 FROM guarded RETURNING job_id
"""
FINISH_ONE = """
WITH guarded AS (
    UPDATE raw_job SET state = 3, worker = NULL, finished_at = statement_timestamp()
    WHERE id = %s AND state = 2 AND fence = %s AND worker = %s
    RETURNING id, fence
)
INSERT INTO raw_attempt (job_id, fence, outcome) SELECT id, fence, 1 FROM guarded RETURNING job_id
"""
EFFECT = "INSERT INTO raw_row (number, who) VALUES (%s, 'job')"
INSERT_ONE = "INSERT INTO raw_job (rank, args) VALUES (%s, %s)"
INSERT_MANY = "INSERT INTO raw_job (rank, args) SELECT n, '[]' FROM unnest(%s::bigint[]) AS n"


def fill(url: str, jobs: int) -> None:
    """Make fresh tables with `jobs` ready jobs, their statistics known, nothing left to flush."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SCHEMA)
        connection.execute(FILL, (jobs,))
        connection.execute("VACUUM ANALYZE raw_job")
        connection.execute("CHECKPOINT")


def drain(url: str, batch: int) -> Callable[[], int]:
    """Return the work of a client that claims and finishes batches until nothing is ready."""
    connection, worker = _connect(url)
    cursor = connection.cursor(binary=True)

    def work() -> int:
        finished = 0
        while claimed := cursor.execute(CLAIM, (worker, batch)).fetchall():
            ids, fences = [row[0] for row in claimed], [row[1] for row in claimed]
            done = cursor.execute(FINISH_MANY, (ids, worker, ids, fences)).fetchall()
            assert len(done) == len(ids)
            finished += len(done)
        return finished

    return work


def exactly_once(url: str, batch: int) -> Callable[[], int]:
    """Return the work of a client that gives each job a transaction of its own, with an effect."""
    connection, worker = _connect(url)
    cursor = connection.cursor(binary=True)

    def work() -> int:
        finished = 0
        while claimed := cursor.execute(CLAIM, (worker, batch)).fetchall():
            for number, fence, _ in claimed:
                with connection.transaction():
                    cursor.execute(EFFECT, (number,))
                    assert cursor.execute(FINISH_ONE, (number, fence, worker)).rowcount == 1
                finished += 1
        return finished

    return work


def insert_each(url: str, jobs: int) -> Callable[[], int]:
    """Return the work of a client that inserts jobs one by one, each its own transaction."""
    connection, _ = _connect(url)

    def work() -> int:
        for number in range(jobs):
            connection.execute(INSERT_ONE, (number, "[]"))
        return jobs

    return work


def insert_chunks(url: str, jobs: int, chunk: int) -> Callable[[], int]:
    """Return the work of a client that inserts jobs in one transaction, a chunk in a statement."""
    connection, _ = _connect(url)

    def work() -> int:
        with connection.transaction():
            for first in range(0, jobs, chunk):
                numbers = list(range(first, min(first + chunk, jobs)))
                connection.execute(INSERT_MANY, (numbers,))
        return jobs

    return work


def _connect(url: str) -> tuple[psycopg.Connection, int]:
    """Return a prepared session that plans with values, and a number for this client."""
    connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
    connection.execute("SET plan_cache_mode = force_custom_plan")
    return connection, connection.info.backend_pid
