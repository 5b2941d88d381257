"""A project that sends its mail by jobs, and what then really goes out."""

from collections.abc import Callable
from typing import Any

import django
import pytest
from django.core import mail

from tests.mail import backends

OURS = "jobqueue.email.EmailBackend"
OUTBOX = "django.core.mail.backends.locmem.EmailBackend"
HAS_MAILERS = django.VERSION >= (6, 1)


@pytest.fixture
def configure(settings: Any) -> Callable[..., None]:
    """Sets how mail is sent; `real` is the path of the real backend."""

    def configure(real: str = OUTBOX, *, path: str = OURS, **options: Any) -> None:
        if HAS_MAILERS:
            settings.MAILERS = {"default": {"BACKEND": path}, "real": {"BACKEND": real}}
        else:
            settings.EMAIL_BACKEND = path
        chosen = {"EMAIL_BACKEND": "real" if HAS_MAILERS else real, **options}
        settings.TASKS = {"default": settings.TASKS["default"] | {"OPTIONS": chosen}}

    return configure


@pytest.fixture(autouse=True)
def outbox(configure: Callable[..., None], db: None) -> list[Any]:
    """What was sent, once it was."""
    configure()
    mail.outbox = []
    backends.given.clear()
    return mail.outbox
