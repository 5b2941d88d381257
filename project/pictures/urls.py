"""The demo's addresses, with lists that fit into a picture."""

from django.contrib import admin

from jobqueue.admin.base import OperationsAdmin
from project.urls import urlpatterns

__all__ = ["urlpatterns"]

ROWS = 12

for model_admin in admin.site._registry.values():
    if isinstance(model_admin, OperationsAdmin):
        model_admin.list_per_page = ROWS
