"""A key under which a client sent a request, and the answer that it got.

Written in the transaction of what the request did: a row that can be seen has its answer, and what
it answers has happened. It lives for a time of its own, whatever becomes of the jobs.
"""

from django.db import models
from django.db.models import Q

from jobqueue.models.fields import JSONDocument

MAX_CALLER_LENGTH = 255
MAX_ROUTE_LENGTH = 64
MAX_KEY_LENGTH = 255
"""Characters of a key. A longer one is refused: two keys cut to one would be one request."""


class IdempotencyKey(models.Model):
    """One request of one caller, and its answer. The columns of the answer are filled at once."""

    id = models.BigAutoField(primary_key=True)
    caller = models.CharField(max_length=MAX_CALLER_LENGTH, help_text="Whose key this is.")
    route = models.CharField(max_length=MAX_ROUTE_LENGTH, help_text="What was asked for.")
    key = models.CharField(max_length=MAX_KEY_LENGTH)
    fingerprint = models.CharField(max_length=64, help_text="Of the canonical body: SHA-256, hex.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    status = models.SmallIntegerField(null=True, help_text="Of the answer; so are the next two.")
    headers = JSONDocument(null=True)
    body = models.BinaryField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                name="jobqueue_idempotencykey_request", fields=["caller", "route", "key"]
            ),
            models.CheckConstraint(
                name="jobqueue_idempotencykey_answer",
                condition=Q(status__isnull=True, headers__isnull=True, body__isnull=True)
                | Q(status__isnull=False, headers__isnull=False, body__isnull=False),
            ),
        )
        indexes = (models.Index(name="jobqueue_idempotencykey_expiry", fields=["expires_at"]),)

    def __str__(self) -> str:
        return f"{self.caller} {self.route} {self.key}"
