"""Mail as jobs: an email backend that makes a job of each message, in the caller's transaction.

    EMAIL_BACKEND = "jobqueue.email.EmailBackend"              # until Django 6.0
    MAILERS = {"default": {"BACKEND": "jobqueue.email.EmailBackend"}, "smtp": {...}}     # from 6.1

A message whose transaction rolls back is never sent, and one that is committed is not lost with
the process. A worker sends it through the real backend: the option EMAIL_BACKEND, which is the
path of one, or an alias in MAILERS.

What it promises: **at least once**. A worker that dies between the server's answer and its own
record sends the message again, since nothing outside the database can be part of a transaction.
Every repetition bears the same Message-ID, made of the job's id, unless the message has one of
its own: mail servers and programs recognize it by that.

What travels: subject, body, addresses (bcc too), headers, attachments, alternatives, and what else
is set on the message if JSON can hold it, such as the tags of a provider. Credentials do not: they
are the real backend's. A message that is too large for a job is refused, with the way out.
"""

from jobqueue.email.backend import EmailBackend
from jobqueue.email.tasks import send_message

__all__ = ["EmailBackend", "send_message"]
