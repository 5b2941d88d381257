"""What jobqueue serves, as a project includes it."""

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("jobqueue/", include("jobqueue.urls")),
]
