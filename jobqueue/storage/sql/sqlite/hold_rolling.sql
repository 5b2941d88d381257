-- How far the counting has come, if it is time; under the write lock, so that nobody else counts.
-- Caller: Storage.hold_rolling.
SELECT attempt_id FROM jobqueue_rolling
WHERE id = 1 AND (%(early)s OR not_before IS NULL OR not_before <= %(now)s
                OR not_before > %(far)s)
