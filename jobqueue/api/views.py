"""The base of every view: who may, what is taken, and problems for all that goes wrong.

In this order, so that nothing is read or revealed too early: the method, the length and type of
the body, credentials, the throttle, the permission of the method, the query string, and only then
the method. Nothing of REST framework's settings in the host project changes any of it.

Views stay outside ATOMIC_REQUESTS: what changes something opens its own transaction, and an answer
leaves after its commit.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.module_loading import import_string
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, MethodNotAllowed, NotAuthenticated
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from jobqueue.api.access import OPEN, HasPermission, Needs, check_view, needs_of
from jobqueue.api.caller import Caller
from jobqueue.api.errors import problem_of
from jobqueue.api.negotiation import JSONOnly
from jobqueue.api.parsing import StrictJSONParser, check_headers
from jobqueue.api.problems import Problem
from jobqueue.api.schema import ApiSchema
from jobqueue.api.serializers import checked, checked_query
from jobqueue.api.throttling import ANONYMOUS, Quota, address_of, spend
from jobqueue.conf import options_for
from jobqueue.surfaces import ApiOptions, api_options


class ApiView(APIView):
    """A view of the API; see the package's docstring for how to write one."""

    renderer_classes: ClassVar[tuple[type[BaseRenderer], ...]] = (JSONRenderer,)
    parser_classes = (StrictJSONParser,)
    permission_classes = (HasPermission,)
    throttle_classes = ()
    content_negotiation_class = JSONOnly
    metadata_class = None
    versioning_class = None
    http_method_names: ClassVar[list[str]] = ["get", "post", "put", "patch", "delete", "head"]

    schema = ApiSchema()
    request: Request
    quota: Quota | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_view(cls)

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        """Return the view, outside ATOMIC_REQUESTS of every database."""
        view = super().as_view(**initkwargs)
        view._non_atomic_requests = set(settings.DATABASES)
        return view

    # --- for methods ------------------------------------------------------------------------------

    @cached_property
    def caller(self) -> Caller:
        """Who asks."""
        authenticator = self.request.successful_authenticator
        by_session = isinstance(authenticator, SessionAuthentication)
        return Caller(self.request.user, self.request.auth, by_session)

    @cached_property
    def query(self) -> dict[str, Any]:
        """The validated parameters of the query string."""
        return checked_query(self.needs.query, self.request.query_params, context={"view": self})

    @cached_property
    def body(self) -> dict[str, Any]:
        """The validated body. Raise Problem with pointers to what is wrong with it."""
        assert self.needs.body is not None, "the method declares no body"
        return checked(self.needs.body, self.request.data, context={"view": self})

    @property
    def needs(self) -> Needs:
        """What the method of this request needs and takes."""
        declared = needs_of(self, self.request.method or "")
        if declared is None:
            raise MethodNotAllowed(self.request.method)
        return declared

    @property
    def options(self) -> ApiOptions:
        """JOBQUEUE["API"]."""
        return api_options()

    @property
    def backend(self) -> str:
        """The TASKS alias of the API."""
        return api_options().backend

    @property
    def database(self) -> str:
        """The alias in DATABASES that holds the jobs."""
        return options_for(self.backend).database

    # --- REST framework's hooks -------------------------------------------------------------------

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Return the classes of the option AUTHENTICATION."""
        return [import_string(path)() for path in api_options().authentication]

    def get_authenticate_header(self, request: Request) -> str:
        """Return what a client without credentials should send: a 401 must say it."""
        headers = (one.authenticate_header(request) for one in self.get_authenticators())
        return next((header for header in headers if header), "Session")

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse what must not reach the method; see the module for the order."""
        self.format_kwarg = None
        declared = self.needs
        check_headers(request._request, takes_body=declared.body is not None)
        if "\x00" in request.META.get("HTTP_AUTHORIZATION", ""):
            raise AuthenticationFailed
        self.perform_authentication(request)
        if self.caller.is_signed_in:
            self._spend(declared.scope, self.caller.owner)
        elif declared.action == OPEN:
            self._spend(ANONYMOUS, address_of(request))
        self.check_permissions(request)
        negotiated = self.perform_content_negotiation(request)
        request.accepted_renderer, request.accepted_media_type = negotiated
        _ = self.query

    def _spend(self, scope: str, who: str) -> None:
        """Count the request. Raise Problem if there were too many."""
        self.quota = spend(scope, who)
        if self.quota is not None and self.quota.is_exceeded:
            seconds = self.quota.seconds
            detail = f"Too many requests ({scope}); the next may come in {seconds} s."
            raise Problem("too-many-requests", detail, headers={"Retry-After": str(seconds)})

    def permission_denied(
        self, request: Request, message: str | None = None, code: str | None = None
    ) -> None:
        """Tell a caller without credentials to bring some, another one what they lack."""
        if not self.caller.is_signed_in:
            raise NotAuthenticated
        permission = self.needs.permission
        raise Problem(
            "permission-denied", f"This needs the permission {permission}.", permission=permission
        )

    def handle_exception(self, exc: Exception) -> HttpResponseBase:
        """Return the answer for `exc`: a problem, whatever it is."""
        if isinstance(exc, NotAuthenticated | AuthenticationFailed):
            exc.auth_header = self.get_authenticate_header(self.request)
            try:
                self._spend(ANONYMOUS, address_of(self.request))
            except Problem as exceeded:
                exc = exceeded
        problem = problem_of(exc, self._http_request)
        if isinstance(exc, MethodNotAllowed):
            problem.headers["Allow"] = ", ".join(self.allowed_methods)
        return problem.response()

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Say of every answer whose it is, and how many more requests may come."""
        answer: HttpResponseBase = super().finalize_response(request, response, *args, **kwargs)
        if not answer.has_header("Cache-Control"):
            answer["Cache-Control"] = "private, no-cache"
        patch_vary_headers(answer, ("Authorization", "Cookie"))
        answer["X-Content-Type-Options"] = "nosniff"
        for name, value in (self.quota.headers() if self.quota else {}).items():
            answer[name] = value
        return answer

    @property
    def _http_request(self) -> HttpRequest:
        request: HttpRequest = self.request._request
        return request


class NotFoundView(ApiView):
    """Whatever address under the prefix has no other view; it tells nobody anything."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse, whatever the method."""
        detail = "There is nothing at this address."
        if not request.path.endswith("/"):
            detail += " Addresses of the API end with a slash."
        raise Problem("not-found", detail)
