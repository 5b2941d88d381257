"""``GET /jobs/``: jobs by a filter, page by page."""

from __future__ import annotations


class ListJobs:
    """The methods of the collection that read it."""
