-- Ids without a row within given spans: each id is compared with the one before it, and the end of
-- its span stands behind the last. Caller: Storage.find_gaps. Index: primary key.
SELECT number, previous + 1, id - 1
FROM (SELECT s.number, i.id, lag(i.id, 1, s.low - 1) OVER (PARTITION BY s.number ORDER BY i.id)
                                 AS previous
      FROM unnest(%(lows)s::bigint[], %(highs)s::bigint[]) WITH ORDINALITY AS s(low, high, number)
      CROSS JOIN LATERAL (
          SELECT a.id FROM jobqueue_attempt a WHERE a.id BETWEEN s.low AND s.high
          UNION ALL SELECT s.high + 1) AS i) AS neighbors
WHERE id > previous + 1
