"""The incident, told once: who did what when, and what failed how.

Times are minutes before now. Nothing is counted here: `course` lives it through, job by job, and
what pages show is derived from that.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobqueue.payload import error_fingerprint
from jobqueue.states import Outcome

OPENED = 100
"""The first order that the database still knows."""
ORDER_SECONDS = 5.0
"""Between one order and the next."""
SKUS = ("teapot", "cup", "kettle", "tea-tin")

SOLD_OUT, RESTOCKED = 75, 64
"""There were no kettles on the shelf."""
DISCARDED = 50
DISCARDED_WHY = "kettles: customers were told"
"""Lee gave up the jobs that had died of it."""
HUNG_UP = 40
"""Since then the mail provider has closed every connection."""
TRIED = 18
"""Kim requeued one dead letter, to see whether mails went out again."""
TRIED_PLACE = 0.93
"""Which one, as a share of them: not of those that died in that very moment."""
PAUSED_QUEUE, PAUSED = "payments", 7
"""Kim paused a queue."""
REPORTED = 3.5
"""Lee started the nightly report by hand."""
REQUEUED = 3
"""Lee requeued all dead letters of the outage; the operation failed after its first step."""
REQUEUED_SHARE, SPREAD_SECONDS = 0.4, 600.0
LIMITED, LIMIT = 5, 10
"""Kim let at most so many mails be sent at once."""
LIMITED_WHY = "go easy on the provider"
DRAINED = 2
"""Kim drained a worker."""

MAX_ATTEMPTS, TIMEOUT_SECONDS = 5, 300.0
SCHEDULE, NIGHTS = "nightly report", 6
"""Nights of which the report's ticks are known."""

STOCK = "project.shop.tasks.reserve_stock"
CHARGE = "project.shop.tasks.charge_card"
MAIL = "project.shop.tasks.send_receipt"
NEWSLETTER = "project.shop.tasks.send_newsletter"
REPORT = "project.shop.reports.report_sales"
QUEUES = {STOCK: "stock", CHARGE: "payments", MAIL: "mail", REPORT: "default", NEWSLETTER: "mail"}
SECONDS = {STOCK: (0.1, 0.4), CHARGE: (0.5, 1.4), MAIL: (0.6, 1.8), REPORT: (380.0, 420.0)}
"""How long an attempt runs, at least and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How an attempt fails. frames: of its traceback, the shop's own among them."""

    error_class: str
    message: str
    frames: str
    seconds: tuple[float, float]
    gives_up: bool = False
    outcome: Outcome = Outcome.FAILED

    @property
    def fingerprint(self) -> str:
        return error_fingerprint(self.error_class, self.message)

    @property
    def traceback(self) -> str:
        head = f"Traceback (most recent call last):\n{CALL}" if self.frames else ""
        return f"{head}{self.frames}{self.error_class}: {self.message}\n"


CALL = """\
  File "/srv/venv/lib/python3.12/site-packages/jobqueue/engine/execution.py", line 212, in call
    return function(*args, **kwargs)
"""
NO_MAIL = Failure(
    error_class="smtplib.SMTPServerDisconnected",
    message="Connection unexpectedly closed by mx.provider.example while sending receipt",
    frames="""\
  File "/srv/shop/project/shop/tasks.py", line 96, in send_receipt
    mail.send(order.email, receipt_for(order))
  File "/srv/shop/project/shop/mail.py", line 31, in send
    provider.deliver(message)
  File "/srv/venv/lib/python3.12/site-packages/provider/client.py", line 118, in deliver
    self._connection.sendmail(*message.envelope)
  File "/usr/local/lib/python3.12/smtplib.py", line 405, in getreply
    raise SMTPServerDisconnected("Connection unexpectedly closed")
""",
    seconds=(2.0, 4.5),
)
NO_KETTLES = Failure(
    error_class="project.shop.stock.OutOfStock",
    message="out of stock: kettle",
    frames="""\
  File "/srv/shop/project/shop/tasks.py", line 41, in reserve_stock
    shelf.take(order.sku, order.quantity)
  File "/srv/shop/project/shop/stock.py", line 22, in take
    raise OutOfStock(f"out of stock: {sku}")
""",
    seconds=SECONDS[STOCK],
)
DECLINED = Failure(
    error_class="project.shop.payments.Declined",
    message="card declined: insufficient funds",
    frames="""\
  File "/srv/shop/project/shop/tasks.py", line 68, in charge_card
    receipt = context.step("charge", payments.charge, order_id, order.amount_cents, key)
  File "/srv/shop/project/shop/payments.py", line 19, in charge
    raise Declined(answer["reason"])
""",
    seconds=SECONDS[CHARGE],
    gives_up=True,
)
DECLINED_SHARE = 1 / 60
DEATH = "lease expired"
LOST = Failure(
    error_class="jobqueue.exceptions.WorkerLost",
    message=f"The worker that ran the job died: {DEATH}.",
    frames="",
    seconds=(0, 0),
    outcome=Outcome.LOST,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """A worker process. started, died: minutes ago. queues: none means every queue."""

    name: str
    host: str
    pid: int
    version: str
    started: float
    queues: tuple[str, ...] = ()
    died: float | None = None
    drained: float | None = None
    slots: int = 4


DAY = 24 * 60
LEFT_OUT = Crew(
    name="mail-1",
    host="app1",
    pid=4_100,
    version="2026.11.24",
    started=6.1 * DAY,
    queues=("mail", "default"),
)
"""Two deployments have passed it by."""
LEAVING = Crew(
    name="main-2", host="app2", pid=5_207, version="2026.11.30", started=540, drained=DRAINED
)
KILLED = Crew(name="main-3", host="app2", pid=5_208, version="2026.11.30", started=540, died=52)
"""Died in the middle of a job, which another did again."""
CREWS = (
    LEFT_OUT,
    Crew(name="main-1", host="app1", pid=4_163, version="2026.11.30", started=541),
    LEAVING,
    KILLED,
)
