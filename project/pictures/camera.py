"""Chromium, driven by Playwright: pictures of pages, and what axe finds on them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from project.pictures import PASSWORD, USER

SIZES = {"desktop": (1_360, 900), "phone": (390, 844)}
WHERE = ("chromium", "chromium-browser", "google-chrome")


def missing() -> str:
    """Return why no picture can be taken here, "" if one can."""
    if find_spec("playwright") is None:
        return "the package playwright is not installed"
    if browser_path() is None:
        return f"no browser on PATH: none of {', '.join(WHERE)}"
    return ""


def browser_path() -> str | None:
    """Return the first Chromium on PATH."""
    return next((found for name in WHERE if (found := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Any]:
    """Yield a browser that needs no privileges."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield started
        finally:
            started.close()


def signed_in(started: Any, url: str, size: str = "desktop", **options: Any) -> Any:
    """Return a page of a browser of its own that is signed in to the admin."""
    width, height = SIZES[size]
    context = started.new_context(viewport={"width": width, "height": height}, **options)
    page = context.new_page()
    page.goto(f"{url}/admin/login/?next=/admin/jobqueue/")
    page.fill("#id_username", USER)
    page.fill("#id_password", PASSWORD)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/jobqueue/")
    return page


def violations(page: Any, *rules: str) -> list[str]:
    """Return what axe finds on a page by all rules, or by those given, a line each."""
    source = axe_source()
    if not source:
        return []
    if not page.evaluate("'axe' in window"):
        page.evaluate(source)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{each['id']}: {node['html'][:160]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def axe_source() -> str:
    """Return axe's script, "" where no package brings it."""
    spec = find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        return ""
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
