"""Links beside a list of jobs: submit one, errors in groups, and all that match."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext as _

from jobqueue.admin import marks, words
from jobqueue.admin.base import OperationsAdmin
from jobqueue.admin.job_forms import BULK_FORMS
from jobqueue.engine.bulk_plan import BULK_VERBS
from jobqueue.filters import states_of


def job_tools(request: HttpRequest, site: OperationsAdmin) -> list[dict[str, str]]:
    """Return what stands above a list of jobs."""
    found = []
    if site.may(request, "enqueue"):
        found.append({"url": site.url_of("job", "submit"), "label": _("Submit a job")})
    if request.user.has_perm("jobqueue.view_errorgroup"):
        found.append({"url": site.url_of("errorgroup", "changelist"), "label": _("Group by error")})
    return found


def matching_links(request: HttpRequest, cl: Any) -> dict[str, Any]:
    """Return what may be done to all jobs that the list's filter matches."""
    if cl.refused is not None or cl.is_popup:
        return {}
    site, text = cl.model_admin, cl.filter_text
    states = states_of(cl.chosen, cl.default_states)
    query = urlencode({"filter": text, "next": request.get_full_path()})
    verbs = [
        {
            "label": _label(verb, cl),
            "tone": words.tone_of(verb),
            "url": f"{site.url_of('job', 'matching', verb)}?{query}",
        }
        for verb in BULK_FORMS
        if states & BULK_VERBS[verb].sources and site.may(request, verb)
    ]
    return {"verbs": verbs, "filter": marks.visible(text)}


def _label(verb: str, cl: Any) -> str:
    """Return what a verb is called; for how many jobs it is, where this page lists all."""
    if cl.page.older is not None or cl.page.newer is not None or cl.page.is_partial:
        return words.verb(verb)
    count = sum(job.state in BULK_VERBS[verb].sources for job in cl.result_list)
    if not count:
        return words.verb(verb)
    return _("%(verb)s: %(count)s") % {"verb": words.verb(verb), "count": marks.number(count)}
