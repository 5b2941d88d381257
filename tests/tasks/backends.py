"""Backends of these tests."""

from jobqueue.backend import JobQueueBackend


class OwnBackend(JobQueueBackend):
    """A project's subclass of the backend."""
