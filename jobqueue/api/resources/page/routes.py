"""Addresses for our own page."""

from django.urls import path

from jobqueue.api.resources.page import bulk, charts, filtering, findings

OPERATION = "page/bulk/<int:operation_id>/"

routes = [
    path("page/throughput/", charts.ThroughputView.as_view(), name="page-throughput"),
    path("page/latency/", charts.LatencyView.as_view(), name="page-latency"),
    path("page/errors/", charts.ErrorsView.as_view(), name="page-errors"),
    path("page/errors/<slug:fingerprint>/", charts.ErrorView.as_view(), name="page-error"),
    path("page/filter/", filtering.FilterView.as_view(), name="page-filter"),
    path("page/findings/", findings.FindingsView.as_view(), name="page-findings"),
    path("page/bulk/", bulk.BulkListView.as_view(), name="page-bulk-operations"),
    path(OPERATION, bulk.BulkView.as_view(), name="page-bulk"),
    path(f"{OPERATION}stop/", bulk.StopView.as_view(), name="page-bulk-stop"),
    path(f"{OPERATION}resume/", bulk.ResumeView.as_view(), name="page-bulk-resume"),
]
