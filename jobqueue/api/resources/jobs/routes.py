"""Addresses of jobs; the first that matches serves, so fixed names come before ids."""

from django.urls import path

from jobqueue.api.resources.jobs import enqueueing
from jobqueue.api.resources.jobs.enqueueing import EnqueueJob
from jobqueue.api.resources.jobs.listing import ListJobs
from jobqueue.api.views import ApiView


class JobsView(EnqueueJob, ListJobs, ApiView):
    """The collection."""


routes = [
    path("jobs/", JobsView.as_view(), name="jobs"),
    *enqueueing.routes,
]
