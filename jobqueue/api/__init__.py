"""The HTTP API: what programs, and our own page, may ask and do. Extra `api`.

    path("jobqueue/", include("jobqueue.urls")),      # the API is at /jobqueue/api/v1/

How a resource is made:

- A view is an `ApiView` (`jobqueue.api.views`) in a module of `jobqueue.api.resources`, whose
  `routes` list `jobqueue.api.urls` concatenates. Two modules that share an address write mixins
  of methods, and one of them composes the view.
- Each method says what it needs, by `@needs` (`jobqueue.api.access`): an action of
  `jobqueue.permissions`, SIGNED_IN for what every caller may (the view then narrows it to the
  caller's own jobs), or OPEN. A method that says nothing is an error when the view's class is
  made: nothing is open by oversight.
- `self.caller` (`jobqueue.api.caller`) is who asks: `caller.actor` for `jobqueue.control`,
  `caller.owner` for `created_by`, `caller.may(action)`, `caller.sees_all`, `caller.own(queryset)`.
- ``@needs(..., query=Q, body=B)`` name serializers (`jobqueue.api.serializers`), which refuse what
  they do not know: `self.query` is validated before the method runs, `self.body` when it is asked.
  `self.options` are JOBQUEUE["API"], `self.database` and `self.backend` where the jobs are.
- Any error is a `Problem` (`jobqueue.api.problems`) by its code; exceptions of
  `jobqueue.exceptions` become theirs by themselves. Codes are declared in
  `jobqueue.api.problem_types`.
- The OpenAPI document is made from all this by `jobqueue.api.schema`: the docstring's first
  paragraph is the summary, the rest the description. A method adds its answers and examples (of a
  body and of each 2xx answer) with drf-spectacular's `extend_schema`, above `@needs`. Which
  problems it may answer beyond those of every method it says by
  ``@needs(..., problems=("wrong-state",))``. The committed document, `openapi.json`, is written by
  ``python -m docs.generate``; the routes that it describes are `documented` of `jobqueue.api.urls`.
"""
