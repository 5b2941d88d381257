"""Addresses of the API; include them under a prefix that ends with a slash."""

try:
    import rest_framework  # noqa: F401
except ImportError as error:
    from django.core.exceptions import ImproperlyConfigured

    raise ImproperlyConfigured(
        'The HTTP API needs REST framework: install "django-jobqueue[api]", or leave '
        "jobqueue.urls out of your URLs."
    ) from error

from django.urls import re_path

from jobqueue.api.resources import (
    documentation,
    health,
    limits,
    queues,
    statistics,
    tasks,
    workers,
)
from jobqueue.api.resources.jobs import routes as jobs
from jobqueue.api.resources.page import routes as page
from jobqueue.api.resources.schedules import routes as schedules
from jobqueue.api.views import NotFoundView

app_name = "jobqueue_api"

documented = [
    *jobs.routes,
    *tasks.routes,
    *queues.routes,
    *limits.routes,
    *workers.routes,
    *schedules.routes,
    *statistics.routes,
    *page.routes,
    *health.routes,
    *documentation.routes,
]
"""What the OpenAPI document describes."""

urlpatterns = [
    *documented,
    *documentation.pages,
    re_path(r"", NotFoundView.as_view(), name="not-found"),
]
