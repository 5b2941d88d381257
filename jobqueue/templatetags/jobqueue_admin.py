"""Tags for the admin's templates: what a page needs that no view of ours makes.

The list of models and the overview are pages of whatever admin site this is; their templates ask
here for what we add to them.

Django's check of templates imports this module in every project, also in one without
`django.contrib.admin`, where `jobqueue.admin` cannot be imported: hence inside the tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

register = template.Library()


@register.inclusion_tag("admin/jobqueue/job_tools.html", takes_context=True)
def jobqueue_job_tools(context: dict[str, Any]) -> dict[str, Any]:
    """Show links to what is done beside a list of jobs."""
    from jobqueue.admin import tools

    return {"tools": tools.job_tools(context["request"], context["cl"].model_admin)}


@register.simple_tag(takes_context=True)
def jobqueue_matching(context: dict[str, Any], cl: Any) -> dict[str, Any]:
    """Return links to what can be done to all jobs that a list's filter matches."""
    from jobqueue.admin import tools

    return tools.matching_links(context["request"], cl)


@register.inclusion_tag("admin/jobqueue/overview.html", takes_context=True)
def jobqueue_overview(context: dict[str, Any]) -> dict[str, Any]:
    """Show how things are, and what is wrong now."""
    from jobqueue.admin.overview import overview

    return overview(context["request"])


@register.filter
def unlocalized(value: Any) -> str:
    """Return a number as HTML attributes want it, whatever the language."""
    return f"{float(value):g}"


@register.filter
def labelled(results: Sequence[list[SafeString]], headers: Sequence[dict[str, Any]]) -> Any:
    """Return the rows of a change list, each cell with its column's name: see admin.css, phones."""
    for row in results:
        row[:] = [_named(cell, header) for cell, header in zip(row, headers, strict=True)]
    return results


def _named(cell: SafeString, header: dict[str, Any]) -> SafeString:
    """Return a cell that bears its column's name; the first of a row needs none, nor has a box."""
    if not cell.startswith("<td") or "action-checkbox" in cell[:40] or "data-label" in cell:
        return cell
    label = format_html('<td data-label="{}"', capfirst(header["text"]))
    return SafeString(label + cell.removeprefix("<td"))
