"""Signals of worker processes and of a job's death. Sent with ``send_robust``: a receiver's error
is logged, never a job's.

The Tasks framework's own ``task_enqueued``, ``task_started`` and ``task_finished`` are sent too.
"""

from django.dispatch import Signal

worker_started = Signal()
"""In the supervisor, before its first process: ``worker``, ``queues``.

``worker`` is the supervisor's own identity here; no row of a worker bears it, but those of its
processes name it as their ``supervisor``.
"""

process_started = Signal()
"""In each worker process, before it claims: ``worker`` (its identity), ``queues``."""

process_stopping = Signal()
"""In each worker process, after its last job has ended: ``worker``."""

worker_stopped = Signal()
"""In the supervisor, after its last process has ended: ``worker``, as in `worker_started`."""

job_died = Signal()
"""After a job became a dead letter, once, in the process that buried it: ``job_id``, ``task``,
``reason``."""
