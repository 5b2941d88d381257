"""One shop and one browser for all tests here; they need a built page and a Chromium.

What is tested is what a person sees. The tests speak to the shop over HTTP only: Playwright's
event loop in this process would keep the ORM from working.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from project.pictures.camera import browser as started_browser
from project.pictures.camera import missing
from project.servers import RedisServer
from tests.browser.stage import ROOT, Stage, signed_in, stage

MANIFEST = ROOT / "jobqueue" / "static" / "jobqueue" / "live" / "manifest.json"
DESKTOP = (1_280, 860)
NO_ANSWER = ("Failed to load resource", "WebSocket connection to")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = missing() or ("" if MANIFEST.exists() else "the page has not been built: make page")
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.process)
            item.add_marker(pytest.mark.postgres_only("a browser sees the same on any database"))
            if why:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """A browser, until the tests here are over: its event loop would stop whoever uses the ORM."""
    with started_browser() as started:
        yield started


@pytest.fixture(scope="session")
def shop() -> Iterator[Stage]:
    """A running shop with two workers that live through all tests of a run."""
    with stage(redis=RedisServer.available(), work_seconds=0.4) as running:
        running.start_workers(2)
        yield running


@pytest.fixture
def page(chromium: Any, shop: Stage) -> Iterator[Any]:
    """A tab of somebody who is signed in, that complains of nothing in its console."""
    opened = signed_in(chromium, shop, DESKTOP)
    complaints = watch_console(opened)
    yield opened
    opened.context.close()
    assert complaints == []


def watch_console(page: Any) -> list[str]:
    """Return the list that gets what the browser complains of, such as refusals of the policy.

    That a server does not answer is no complaint: tests kill it.
    """
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text)
            if message.type == "error" and not message.text.startswith(NO_ANSWER)
            else None
        ),
    )
    return complaints
