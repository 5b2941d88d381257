"""What the tests of hints share: options in force, and ears that listen."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobqueue.hints import breaker, redis_streams
from tests.hints.ears import Ear

BACKEND = "jobqueue.backend.JobQueueBackend"

Use = Callable[..., None]
Listen = Callable[..., Ear]


@pytest.fixture
def use(settings: Any) -> Use:
    """Return a function that puts options in force: `use(hints="redis", redis_url=…)`."""

    def put(**options: Any) -> None:
        upper = {name.upper(): value for name, value in options.items()}
        settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"REDIS_URL": None, **upper}}}

    return put


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Return a function that starts an Ear; all are stopped at the end."""
    ears: list[Ear] = []

    def start(*queues: str, wants: bool = True) -> Ear:
        ears.append(Ear(queues, wants))
        return ears[-1]

    yield start
    for ear in ears:
        ear.listener.stop()


@pytest.fixture
def no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine loses no hint either, where a test counts them."""
    monkeypatch.setattr(breaker, "BUDGET_SECONDS", 3_600.0)
    monkeypatch.setattr(redis_streams, "SEND_TIMEOUT_SECONDS", 30.0)
