"""The rows that a job has left in the project's own tables, beside its attempts.

    JOBQUEUE = {"ADMIN": {"EFFECTS": ["shop.Charge.job_id", "shop.Order.stock_job"]}}

Each entry is APP.MODEL.FIELD: a field that holds the id of the job that wrote the row, as text or
UUID. Give it an index: it is looked up on every page of a job. Shown to whoever may view the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.auth import get_permission_codename
from django.core.exceptions import FieldDoesNotExist
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from jobqueue.admin import marks
from jobqueue.surfaces import admin_options

MAX_ROWS = 20


@dataclass(frozen=True, slots=True)
class Effects:
    """The rows of one model that name a job. has_more: there are more than are listed."""

    name: str
    field: str
    rows: list[tuple[str, str]]
    has_more: bool


def model_and_field(name: str) -> tuple[Any, Any]:
    """Return what APP.MODEL.FIELD names. Raise ValueError, LookupError or FieldDoesNotExist."""
    label, model_name, field = name.split(".")
    model = apps.get_model(label, model_name)
    return model, model._meta.get_field(field)


def of_job(request: HttpRequest, site: AdminSite, job: Any) -> list[Effects]:
    """Return the effects of a job that this user may see."""
    return list(_found(request, site, job))


def _found(request: HttpRequest, site: AdminSite, job: Any) -> Iterator[Effects]:
    for name in admin_options().effects:
        try:
            model, field = model_and_field(name)
        except (ValueError, LookupError, FieldDoesNotExist):
            continue  # a system check says so
        options = model._meta
        permission = f"{options.app_label}.{get_permission_codename('view', options)}"
        if not request.user.has_perm(permission):
            continue
        value = job.pk if field.get_internal_type() == "UUIDField" else str(job.pk)
        rows = list(
            model._default_manager.filter(**{field.name: value}).order_by("pk")[: MAX_ROWS + 1]
        )
        if rows:
            shown = [(marks.visible(marks.cut(row)), _url(site, row)) for row in rows[:MAX_ROWS]]
            yield Effects(str(options.verbose_name_plural), field.name, shown, len(rows) > MAX_ROWS)


def _url(site: AdminSite, row: Any) -> str:
    where = f"admin:{row._meta.app_label}_{row._meta.model_name}_change"
    try:
        return reverse(where, args=[row.pk], current_app=site.name)
    except NoReverseMatch:
        return ""
