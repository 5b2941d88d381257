"""Addresses of the page; under one prefix with the API, behind it."""

from django.urls import path, re_path

from jobqueue.live.page import page, socket_over_http

app_name = "jobqueue_live"

urlpatterns = [
    path("", page, name="page"),
    path("ws/", socket_over_http, name="socket"),
    re_path(r"^(?!api/|ws/)", page, name="route"),
]
