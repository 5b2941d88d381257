"""For the tests of projects that use jobqueue.

    with eager() as jobs:                      # jobs run where they are enqueued
        client.post("/orders/", ...)
    assert jobs[0].job_state == "succeeded"

    client.post("/orders/", ...)               # or as rows, in the test's own transaction,
    report = run_due()                         # which run when the test says so
    assert len(report.succeeded) == 1

    enqueued(send_receipt)                     # the results of that task's jobs, in order
    assert_enqueued(send_receipt, args=[order.pk], queue_name="mail")

See `jobqueue.testing.eager` and `jobqueue.testing.running` for what each does and does not do.
"""

from jobqueue.testing.assertions import assert_enqueued, enqueued
from jobqueue.testing.eager import EagerBackend, eager
from jobqueue.testing.running import RunReport, run_due

__all__ = ["EagerBackend", "RunReport", "assert_enqueued", "eager", "enqueued", "run_due"]
