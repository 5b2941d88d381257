"""What was sold on a day, reported each morning: a schedule, and a job that says how far it is.

The job is told its tick, so that one that runs late, or again, is about the day it was meant for.
"""

from datetime import datetime, timedelta

from django.db.models import Sum
from django.utils import timezone

from jobqueue import schedule, task
from project.shop.catalog import ARTICLES
from project.shop.models import Order


@task(takes_context=True)
def report_sales(context) -> dict[str, int]:
    """Return the cents that each article earned on the day before the tick."""
    end = midnight_before(context.tick or timezone.now())
    sold = Order.objects.filter(created_at__gte=end - timedelta(days=1), created_at__lt=end)
    report = {}
    for n, sku in enumerate(ARTICLES, start=1):
        earned = sold.filter(sku=sku).aggregate(cents=Sum("amount_cents"))["cents"]
        report[sku] = earned or 0
        context.progress(n, len(ARTICLES), f"{sku} counted")
    return report


def midnight_before(moment: datetime) -> datetime:
    """Return the last midnight, in the shop's time zone."""
    return timezone.localtime(moment).replace(hour=0, minute=0, second=0, microsecond=0)


schedule("sales report", report_sales, cron="0 6 * * *", overlap="skip")
