"""``/jobs/``: what is enqueued here, and what becomes of it.

Two kinds of methods share the address of the collection: `listing` reads, `enqueueing` makes jobs.
"""
