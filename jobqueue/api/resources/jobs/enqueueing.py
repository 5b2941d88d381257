"""``POST /jobs/`` and ``/jobs/batch/``: jobs are made."""

from __future__ import annotations

from django.urls import URLPattern


class EnqueueJob:
    """The method of the collection that makes a job."""


routes: list[URLPattern] = []
"""Addresses beside the collection's own."""
