"""Addresses of jobs; the first that matches serves, so fixed names come before ids."""

from django.urls import path

from jobqueue.api.resources.jobs import acting, enqueueing, history, one
from jobqueue.api.resources.jobs.enqueueing import EnqueueJob
from jobqueue.api.resources.jobs.listing import ListJobs
from jobqueue.api.views import ApiView


class JobsView(EnqueueJob, ListJobs, ApiView):
    """The collection."""


JOB = "jobs/<uuid:job_id>/"

routes = [
    path("jobs/", JobsView.as_view(), name="jobs"),
    *enqueueing.routes,
    path(JOB, one.JobView.as_view(), name="job"),
    path(f"{JOB}cancel/", acting.CancelView.as_view(), name="job-cancel"),
    path(f"{JOB}requeue/", acting.RequeueView.as_view(), name="job-requeue"),
    path(f"{JOB}discard/", acting.DiscardView.as_view(), name="job-discard"),
    path(f"{JOB}run-now/", acting.RunNowView.as_view(), name="job-run-now"),
    path(f"{JOB}attempts/", history.AttemptsView.as_view(), name="job-attempts"),
    path(f"{JOB}steps/", history.StepsView.as_view(), name="job-steps"),
    path(f"{JOB}log/", history.LogView.as_view(), name="job-log"),
    path(f"{JOB}actions/", history.ActionsView.as_view(), name="job-actions"),
]
