-- Whether attempts wait to be counted, and it is time. Caller: Storage.has_uncounted (a scheduler,
-- without a lock). A time that is far ahead was written before the clock stepped back.
SELECT coalesce((SELECT max(id) FROM jobqueue_attempt), 0)
           > coalesce((SELECT attempt_id FROM jobqueue_rolling WHERE id = 1), 0)
   AND (%(early)s OR NOT EXISTS (SELECT 1 FROM jobqueue_rolling
                                   WHERE id = 1 AND not_before > %(now)s
                                     AND not_before <= %(far)s))
