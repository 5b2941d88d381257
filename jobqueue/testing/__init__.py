"""For the tests of projects that use jobqueue.

    with eager() as jobs:                      # jobs run where they are enqueued
        client.post("/orders/", ...)
    assert jobs[0].job_state == "succeeded"

    enqueued(send_receipt)                     # the results of that task's jobs, in order
    assert_enqueued(send_receipt, args=[order.pk], queue_name="mail")

See `jobqueue.testing.eager` for what eager mode does and does not do.
"""

from jobqueue.testing.assertions import assert_enqueued, enqueued
from jobqueue.testing.eager import EagerBackend, eager

__all__ = ["EagerBackend", "assert_enqueued", "eager", "enqueued"]
