"""Checks of the admin's options: what they name has to be there, and quick to look up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model

from jobqueue.conf import jobqueue_aliases
from jobqueue.surfaces import parse_admin


def check_admin() -> Iterator[CheckMessage]:
    """Yield what is wrong with the admin's options."""
    site: Any = getattr(settings, "JOBQUEUE", {})
    options, problems = parse_admin(site.get("ADMIN", {}) if isinstance(site, dict) else {})
    for problem in problems:
        yield _error(f"{problem.option} {problem.message}", "Until then its default is used.")
    known = jobqueue_aliases()
    if known and options.backend not in known and "BACKEND" in site.get("ADMIN", {}):
        yield _error(
            f"BACKEND is {options.backend!r}, which is no alias in TASKS of jobqueue's backend.",
            f"Use one of {', '.join(known)}.",
        )
    for name in options.effects:
        yield from _effect(name)


def _effect(name: str) -> Iterator[CheckMessage]:
    label, model_name, field_name = name.split(".")
    try:
        model = apps.get_model(label, model_name)
        field = model._meta.get_field(field_name)
    except (LookupError, FieldDoesNotExist) as error:
        yield _error(f"EFFECTS names {name!r}: {error}", "Name a field as APP.MODEL.FIELD.")
        return
    if not _is_indexed(model, field):
        yield Warning(
            f"JOBQUEUE['ADMIN']: the field {name} in EFFECTS has no index, and is looked up on the "
            "page of every job.",
            hint="Give it db_index=True, or an index that begins with it.",
            id="jobqueue.W060",
        )


def _is_indexed(model: type[Model], field: Any) -> bool:
    if field.db_index or field.unique:
        return True
    leading = [index.fields[:1] for index in model._meta.indexes]
    leading += [list(c.fields[:1]) for c in model._meta.constraints if hasattr(c, "fields")]
    return [field.name] in leading


def _error(text: str, hint: str) -> Error:
    return Error(f"JOBQUEUE['ADMIN']: {text}", hint=hint, id="jobqueue.E060")
