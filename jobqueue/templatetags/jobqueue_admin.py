"""Tags for the admin's templates: what a page needs that no view of ours makes.

The list of models and the overview are pages of whatever admin site this is; their templates ask
here for what we add to them.

Django's check of templates imports this module in every project, also in one without
`django.contrib.admin`, where `jobqueue.admin` cannot be imported: hence inside the tags.
"""

from __future__ import annotations

from typing import Any

from django import template

register = template.Library()


@register.inclusion_tag("admin/jobqueue/job_tools.html", takes_context=True)
def jobqueue_job_tools(context: dict[str, Any]) -> dict[str, Any]:
    """Show links to what is done beside a list of jobs."""
    from jobqueue.admin import tools

    return {"tools": tools.job_tools(context["request"], context["cl"].model_admin)}


@register.inclusion_tag("admin/jobqueue/matching_links.html", takes_context=True)
def jobqueue_matching(context: dict[str, Any], cl: Any) -> dict[str, Any]:
    """Show links to what can be done to all jobs that a list's filter matches."""
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
