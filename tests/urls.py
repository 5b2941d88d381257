"""What jobqueue serves, as a project includes it."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("jobqueue/", include("jobqueue.urls")),
]
