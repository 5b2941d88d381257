"""Jobs of an object, on its own page in the admin of any model: those that bear its tag.

    from jobqueue.admin import JobsOfObject

    class OrderAdmin(JobsOfObject, admin.ModelAdmin):
        jobs_tag = "order:{pk}"          # filled in with the object's attributes

Tasks are enqueued with that tag (``send_receipt.using(tags=[f"order:{order.pk}"])``). Shown to
whoever may view jobs.
"""

from __future__ import annotations

from string import Formatter
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.forms import Media
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobqueue import permissions
from jobqueue.admin import home, marks
from jobqueue.engine.job_walks import Span, gather
from jobqueue.filters import Filter, term
from jobqueue.models import Job

MAX_JOBS = 10
FIELD = "jobs_of_object"


class JobsOfObject:
    """Adds a read-only section with an object's newest jobs to a ModelAdmin's page."""

    jobs_tag = "{model}:{pk}"
    admin_site: Any

    @property
    def media(self) -> Media:
        found: Media = super().media  # type: ignore[misc]
        return found + Media(css={"all": ["jobqueue/admin.css"]})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_readonly_fields(request, obj)  # type: ignore[misc]
        return (*found, FIELD) if self._shows_jobs(request, obj) else found

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        found = list(super().get_fieldsets(request, obj))  # type: ignore[misc]
        if not self._shows_jobs(request, obj):
            return found
        plain = [(title, _without(options)) for title, options in found]
        return [*plain, (_("Jobs"), {"fields": [FIELD]})]

    def _shows_jobs(self, request: HttpRequest, obj: Any) -> bool:
        return obj is not None and permissions.may(request.user, permissions.VIEW)

    def tag_of(self, obj: Any) -> str:
        """Return the tag of an object's jobs."""
        names = {name for _text, name, _spec, _conv in Formatter().parse(self.jobs_tag) if name}
        values = {name: getattr(obj, name, "") for name in names - {"model"}}
        return self.jobs_tag.format(model=obj._meta.model_name, **values)

    @admin.display(description=gettext_lazy("newest jobs"))
    def jobs_of_object(self, obj: Any) -> SafeString:
        """Return the newest jobs that bear the object's tag."""
        tag, site = self.tag_of(obj), self.admin_site.name
        rows = Job.objects.using(home.database())
        ids = gather(rows.tagged(tag))(Span(limit=MAX_JOBS)).ids
        jobs = rows.filter(pk__in=ids).order_by("-pk").only("id", "task", "state", "enqueued_at")
        shown = format_html_join(
            "",
            '<li><a href="{}">{}</a> {} {} {}</li>',
            (
                (
                    reverse("admin:jobqueue_job_change", args=[job.pk], current_app=site),
                    marks.text(job.task, 100),
                    marks.badge(job.state),
                    marks.note(_("enqueued")),
                    marks.note(marks.moment(job.enqueued_at)),
                )
                for job in jobs
            ),
        )
        query = urlencode({"state": "any", "q": str(Filter((term("tag", tag),)))})
        every = f"{reverse('admin:jobqueue_job_changelist', current_app=site)}?{query}"
        return format_html(
            '<ul class="jq-list">{}</ul><a href="{}">{}</a><p>{}</p>',
            shown or format_html("<li>{}</li>", _("None.")),
            every,
            _("All with the tag %(tag)s") % {"tag": marks.visible(tag)},
            render_to_string("admin/jobqueue/zone.html"),
        )


def _without(options: dict[str, Any]) -> dict[str, Any]:
    """Return a fieldset without our field, which Django adds to the default one."""
    return options | {"fields": [name for name in options.get("fields", ()) if name != FIELD]}
