"""What the job's own work costs without a queue: a loop of Django transactions of one insert."""

import os
from collections.abc import Callable


def insert_rows(url: str, jobs: int) -> Callable[[], int]:
    """Return the work of a thread that inserts `jobs` rows, each in its own ``atomic()``."""
    use_settings(url)
    from django.db import connection, transaction

    from benchmarks.app.models import Row

    connection.ensure_connection()

    def work() -> int:
        for number in range(jobs):
            with transaction.atomic():
                Row.objects.create(number=number, who="loop")
        return jobs

    return work


def use_settings(url: str) -> None:
    """Set Django up on the benchmark's database; again changes nothing."""
    os.environ["BENCHMARK_URL"] = url
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    import django

    django.setup()
