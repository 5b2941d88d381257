"""Everything that jobqueue serves, for one line in the project's URLs.

    path("jobqueue/", include("jobqueue.urls")),

That is the HTTP API and the live page, which lives off it. A project that wants the API alone, or
elsewhere, includes ``jobqueue.api.urls`` by itself.
"""

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("jobqueue.api.urls")),
    path("", include("jobqueue.live.urls")),
]
