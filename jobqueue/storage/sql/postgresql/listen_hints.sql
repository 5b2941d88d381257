-- Hears the hints of this database. Caller: hints/postgres_notify.py, on a session of its own in
-- autocommit; needs a direct session. The channel is that of notify_channel.sql's caller.
LISTEN jobqueue_hint
