"""What the benchmark's web server serves: the API, and the bare view that it is measured beside."""

from django.urls import include, path

from benchmarks.bare import BareView

urlpatterns = [
    path("jobqueue/", include("jobqueue.urls")),
    path("bare/", BareView.as_view()),
]
