-- Sums up attempts by minute, outcome and {queue}, {named}: a task in its queue, or a worker.
-- Caller: Storage.tally_attempts. A bucket is a character, so that a histogram is a text which the
-- client counts: by far the fastest. date_part, not extract, which computes in numeric.
-- Twice, by task and by worker, and not once by both: that could be as many groups as attempts.
-- Index: primary key.
SELECT minute, queue, name::text, outcome, count(*),
       coalesce(sum(waited), 0.0)::float8, sum(ran)::float8,
       coalesce(string_agg(chr(%(first)s + width_bucket(waited, %(bounds)s::float8[])), ''), ''),
       string_agg(chr(%(first)s + width_bucket(ran, %(bounds)s::float8[])), '')
FROM (SELECT date_bin('1 minute', a.finished_at, timestamptz '2000-01-01 00:00:00+00') AS minute,
             {queue} AS queue, {named} AS name, a.outcome,
             date_part('epoch', greatest(a.started_at, a.due_at) - a.due_at) AS waited,
             date_part('epoch', greatest(a.finished_at, a.started_at) - a.started_at) AS ran
      FROM unnest(%(lows)s::bigint[], %(highs)s::bigint[]) AS s(low, high)
      JOIN jobqueue_attempt a ON a.id BETWEEN s.low AND s.high) AS ended
GROUP BY minute, queue, name, outcome
