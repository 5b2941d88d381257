"""Change lists of any length: a page at a time by primary key, the newest first, never counted.

Django's own list counts the table at least once, and reads page 1,000 by reading the 999 before it.
This one knows of a page, and whether there is an older and a newer one. Its order is that of the
primary key, so nothing is shown twice or left out while rows come and go.

A page looks at a bounded number of rows (`jobqueue.engine.job_walks`): where little matches, it may
hold fewer rows than it could, and offers to look on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from jobqueue import permissions
from jobqueue.admin.base import field_or_none
from jobqueue.engine.job_walks import Span, Walk, along_table, through_table

OLDER, NEWER = "older_than", "newer_than"
LOOKS = 1
"""Windows that one page of a list looks at where nothing says that an index serves."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """Keys of one page, the newest first, and where the pages beside it begin."""

    keys: list[Any]
    older: Any = None
    newer: Any = None
    is_partial: bool = False


def list_page(walk: Walk, size: int, older_than: Any, newer_than: Any) -> ListPage:
    """Return the page beyond an edge, or from the end if there is none."""
    is_newer = newer_than is not None
    edge = newer_than if is_newer else older_than
    walked = walk(Span(limit=size + 1, edge=edge, newer=is_newer))
    keys = list(walked.ids[:size])
    has_more = len(walked.ids) > size
    beyond = keys[-1] if has_more else walked.searched_to
    is_partial = not has_more and beyond is not None
    back = None if edge is None else (keys[0] if keys else edge)
    if is_newer:
        return ListPage(keys[::-1], older=back, newer=beyond, is_partial=is_partial)
    return ListPage(keys, older=beyond, newer=back, is_partial=is_partial)


class NoPaginator(Paginator):  # type: ignore[type-arg]
    """What Django's templates ask a paginator for; it never counts."""

    count = 0
    num_pages = 1


class NamedChangeList(ChangeList):
    """A list whose title says what is in it, not what to do: rows are looked at, not chosen."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.title = self.opts.verbose_name_plural.capitalize()  # type: ignore[union-attr]


class KeysetChangeList(NamedChangeList):
    """A list with "older" and "newer" instead of numbered pages."""

    is_keyset = True
    shows_times = True
    order_text = gettext_lazy("The newest first.")
    page: ListPage

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self._edges = {name: request.GET[name] for name in (OLDER, NEWER) if request.GET.get(name)}
        self._with_payload = permissions.may(request.user, permissions.VIEW_PAYLOAD)
        super().__init__(request, *args, **kwargs)

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        found = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name not in (OLDER, NEWER)}

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Return the address of a list with other filters: its first page."""
        new_params = {OLDER: None, NEWER: None, **(new_params or {})}
        return super().get_query_string(new_params, remove)

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["-pk"]

    def walk(self) -> Walk:
        """Return how the rows are found."""
        rows, all_rows = self.queryset, self.root_queryset
        if not rows.query.where:
            return along_table(rows)
        return through_table(all_rows, rows, looks=LOOKS)

    def rows(self, keys: list[Any]) -> list[Any]:
        """Return the rows of a page."""
        found = self.root_queryset.filter(pk__in=keys).in_bulk() if keys else {}
        return [found[key] for key in keys if key in found]

    def get_results(self, request: HttpRequest) -> None:
        """Read one page; for a POST none, which an action does not need."""
        self.page = ListPage([]) if request.method == "POST" else self._read()
        self.result_list = self.rows(self.page.keys)
        for row in self.result_list:
            row.with_payload = self._with_payload  # columns are not told who asks
        self.result_count = len(self.result_list)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = bool(self.result_list)
        self.can_show_all = False
        self.multi_page = False
        self.paginator = NoPaginator(self.result_list, self.list_per_page)

    def _read(self) -> ListPage:
        edges = {name: field_or_none(self.model, value) for name, value in self._edges.items()}
        newer_than = edges.get(NEWER)
        older_than = None if newer_than is not None else edges.get(OLDER)
        return list_page(self.walk(), self.list_per_page, older_than, newer_than)

    # --- links of the template ------------------------------------------------------------------

    @property
    def older_url(self) -> str | None:
        return self._edge_url(OLDER, self.page.older)

    @property
    def newer_url(self) -> str | None:
        return self._edge_url(NEWER, self.page.newer)

    @property
    def newest_url(self) -> str | None:
        return self.get_query_string() if self.page.newer is not None else None

    def _edge_url(self, name: str, edge: Any) -> str | None:
        if edge is None:
            return None
        return super().get_query_string({OLDER: None, NEWER: None, name: str(edge)})
