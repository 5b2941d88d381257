"""What the tests' tasks do: rows that can be counted."""

from django.db import models


class Effect(models.Model):
    """One effect of one run of a job.

    No unique constraint, on purpose: a doubled effect must be visible as two rows.
    """

    job_id = models.TextField(db_index=True)
    label = models.TextField(default="")
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.label} of {self.job_id}"
